"""Tuning: the numbers that an engine runs by, and which of them are accepted."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from rota.domain.keys import check_queue
from rota.domain.kinds import is_number, is_whole
from rota.domain.policy import FAR, LEAST_SILENCE

DAY = 86_400.0
MOST_KEPT = 1_000_000
"""The largest number of ended runs that a task may keep. A sweep counts them."""


class Retention(Struct, frozen=True, kw_only=True):
    """How long ended runs are kept."""

    succeeded: float = DAY
    """Seconds for which a run that succeeded is kept."""
    failed: float = 7 * DAY
    """Seconds for which a run that failed or was cancelled is kept."""
    most: int = 10_000
    """The most ended runs kept per task."""
    least: int = 50
    """The last ended runs of a task, kept whatever their age."""


def check_retention(keep: Retention) -> Retention:
    """Return the retention of a task; raise ValueError for a number that is out of range."""
    for name in ("succeeded", "failed"):
        if not is_number(age := getattr(keep, name)) or not 0 <= age <= FAR:
            raise ValueError(f"keep=Retention({name}={age!r}): from 0 seconds to ten years")
    for name in ("most", "least"):
        if not is_whole(count := getattr(keep, name)) or not 0 <= count <= MOST_KEPT:
            raise ValueError(f"keep=Retention({name}={count!r}): a whole number from 0 to {MOST_KEPT:,}")
    return keep


class Tuning(Struct, frozen=True, kw_only=True):
    """Seconds, and seats. Raises ValueError for numbers that `check_tuning` refuses."""

    concurrency: int = 10
    """Seats: how many runs the worker works on at once."""
    queues: tuple[str, ...] = ()
    """The queues whose runs the worker takes; empty: all queues."""
    lease: float = 30.0
    """Seconds after which the runs of a silent worker go to another."""
    renew: float = 0.0
    """Seconds between renewals; 0 for a third of the lease."""
    rescue: float = 0.0
    """Seconds between looks for lapsed leases; 0 for a sixth of the lease."""
    silence: float = 600.0
    """Seconds for which the heart renews the leases of an event loop that does not answer."""
    grace: float = 30.0
    """Seconds that running handlers have to end when the engine stops."""
    sweep: float = 60.0
    """Seconds between sweeps."""
    trace_store: bool = False
    """Whether claims and settlements have spans of their own, with OpenTelemetry."""
    retention: Retention = Retention()

    def __post_init__(self) -> None:
        check_tuning(self, lambda name: f"{name}={getattr(self, name)!r}")

    @property
    def renew_every(self) -> float:
        return self.renew or self.lease / 3

    @property
    def rescue_every(self) -> float:
        return self.rescue or self.lease / 6


def check_tuning(numbers: Any, quote: Callable[[str], str]) -> None:
    """Raise ValueError for a number that is out of range or contradicts another.

    `numbers` has the fields of Tuning, `retention` aside. `quote(name)` writes the number `name` for a message.
    """
    if numbers.concurrency < 1:
        raise ValueError(f"{quote('concurrency')}: a whole number of seats, at least 1")
    try:
        for queue in numbers.queues:
            check_queue(queue)
    except ValueError as error:
        raise ValueError(f"{quote('queues')}: {error}") from None
    for name in ("lease", "sweep"):
        if not 0.1 <= getattr(numbers, name) <= DAY:
            raise ValueError(f"{quote(name)}: from 0.1 seconds to a day")
    for name in ("renew", "rescue", "grace"):
        if not 0 <= getattr(numbers, name) <= FAR:
            raise ValueError(f"{quote(name)}: from 0 seconds to ten years")
    if not LEAST_SILENCE <= numbers.silence <= FAR:
        raise ValueError(f"{quote('silence')}: from {LEAST_SILENCE:g} second to ten years")
    if numbers.renew >= numbers.lease / 2:
        raise ValueError(f"{quote('renew')} with {quote('lease')}: renew more than twice per lease")
