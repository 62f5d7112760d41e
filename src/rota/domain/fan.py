"""Fan: the runs that a fan-out makes of one list, and how many of them have ended.

The ids say who belongs to a fan: its children are `FAN.0`, `FAN.1` and so on, and `FAN.all` is the gather, the run that
gets their results. A put with one of these ids again makes no second run. The id of the fan is the id of the run whose
result was the list; a list that was known at the submit has an id of its own.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from rota.domain.kinds import is_whole
from rota.domain.policy import Policy

GATHER = "all"
MOST = 100_000
"""The most children of a fan."""
CHUNK = 1_000
"""Children that one put makes."""


class Fan(Struct, frozen=True):
    """The counts of a fan, as a store keeps them. `total` is None while the list still grows. `allowed` is how many
    children may end without success; None: all of them. The need of the gather is met when the fan is `over`."""

    id: str
    total: int | None = None
    allowed: int | None = None
    ended: int = 0
    failed: int = 0
    created_at: float = 0.0

    @property
    def stopped(self) -> bool:
        """Whether more children have ended without success than are allowed to."""
        return self.allowed is not None and self.failed > self.allowed

    @property
    def words(self) -> str:
        """How many children have ended, in a few words: "34/100"."""
        total = "…" if self.total is None else f"{self.total:,}"
        return f"{self.ended:,}/{total}" + (f", {self.failed:,} without success" if self.failed else "")

    @property
    def share(self) -> float:
        """The share of the children that have ended; 0 while the total is unknown."""
        return min(1.0, self.ended / self.total) if self.total else 0.0

    @property
    def over(self) -> bool:
        return self.stopped or (self.total is not None and self.ended >= self.total)


Failures = Literal["stop", "collect"] | int
"""How many children may end without success: none, all of them, or a number."""


class Spreads(Struct, frozen=True, omit_defaults=True):
    """Of a run whose result is a list: each item becomes a child, a run of `task` with these `args` (JSON) and the item
    as one more argument. `on_end` (JSON) are the callbacks beside those of the task."""

    fan: str
    task: str
    args: str = "{}"
    policy: Policy = Policy()
    priority: int = 0
    queue: str = "default"
    expires_after: float | None = None
    expires_at: float | None = None
    delay: float = 0.0
    due_at: float | None = None
    key: str | None = None
    headers: dict[str, str] | None = None
    on_end: str = "[]"


class Gathers(Struct, frozen=True):
    """Of a gather: the parameter that gets the results of the children."""

    fan: str
    parameter: str


def allowed_of(failures: object) -> int | None:
    """Return how many children may end without success; None: all of them. Raise ValueError for a wrong value."""
    if failures == "collect":
        return None
    if failures == "stop":
        return 0
    if is_whole(failures) and isinstance(failures, int) and 0 <= failures <= MOST:
        return failures
    raise ValueError(f"failures={failures!r}: 'stop', 'collect', or how many may fail, up to {MOST:,}")


def child_id(fan: str, index: int) -> str:
    return f"{fan}.{index}"


def gather_id(fan: str) -> str:
    return f"{fan}.{GATHER}"


def fan_of(run: str) -> str | None:
    """Return the fan that the run with this id is a child of, if the id is that of a child."""
    fan, _, index = run.rpartition(".")
    return fan if fan and index.isascii() and index.isdigit() else None


def is_fan_need(need: str) -> bool:
    return need.startswith("#")


def awaited_fan(needs: Sequence[str]) -> str | None:
    """Return the fan that a run with these needs waits for, if it is a gather."""
    return next((need[1:].partition(" ")[0] for need in needs if is_fan_need(need)), None)


def need_of(fan: str) -> str:
    """Return the need of the gather, which the end of the last child meets. To a store it is a name like those in
    `domain.needs`, of which there is never a mark."""
    return f"#{fan} {GATHER}"
