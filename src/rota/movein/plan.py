"""Row: one schedule of another scheduler, and what rota makes of it. Source: all rows of one crontab, database or
scheduler."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.intake import Options
from rota.domain.scheduling import Timed
from rota.domain.triggers import Trigger
from rota.errors import InvalidOptions
from rota.movein.stops import Stop

ROWS_LIMIT = 10_000
"""The most schedules that one import reads."""
TEXT_LIMIT = 1_000_000
"""The most characters of a file that an import reads."""

Fires = Callable[[datetime, datetime], Iterable[datetime]]
"""The fires strictly after the first instant, up to and including the second, in their order."""
Outcome = Literal["same", "differs", "refused"]


class Difference(Struct, frozen=True, order=True):
    """An instant at which only one of the two fires."""

    at: datetime
    by: Literal["source", "rota"]
    """Who fires."""
    why: str
    """Empty if nothing explains the difference."""


class Row(Struct, frozen=True, kw_only=True):
    """One schedule of another scheduler. A row that is `refused` has the reason and no trigger."""

    name: str
    """The name of the schedule, and of the task in the code."""
    where: str
    """Where it was found: `line 4`."""
    says: str
    """What the source has, as the source writes it."""
    trigger: Trigger | None = None
    tz: str = "UTC"
    task: str
    """The task that a schedule of `--apply` calls, with `args` and `kwargs`."""
    args: Sequence[object] = ()
    kwargs: Mapping[str, object] = {}
    timed: Timed = Timed()
    options: Options = Options()
    limit: int | None = None
    """The most runs at the same time, in the code."""
    paused: bool = False
    notes: Sequence[str] = ()
    """What a reader should know of this row beside its times."""
    refused: str = ""
    differences: Sequence[Difference] = ()
    imports: Sequence[str] = ()
    """Lines of Python that the `body` needs."""
    body: Sequence[str] = ()
    """The lines of the function in the code."""
    is_async: bool = False
    model: Fires | None = None
    """When the source fires, as far as it can be known without its own engine; None if it fires as the trigger does."""
    engine: Fires | None = None
    """When the source fires, by its own engine; None if the engine cannot be imported."""

    @property
    def outcome(self) -> Outcome:
        if self.refused:
            return "refused"
        return "differs" if self.differences else "same"


class Source(Struct, frozen=True, kw_only=True):
    """What an import has read."""

    kind: str
    """The word of the command: crontab, apscheduler, beat-db, celery, huey, k8s, systemd."""
    where: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()
    """What holds for all rows."""
    engine: str = ""
    """The name of the engine that can prove the rows; empty if there is none."""
    imports: Sequence[str] = ()
    prelude: Sequence[str] = ()
    """Lines of Python before the tasks."""
    stop: str = ""
    """How people stop the source at the instant of the cut-over."""
    stop_at: Stop | None = None
    """Stops the source at an instant; None if rota cannot."""


def refuse(row: Row, reason: str) -> Row:
    """Return the row without a trigger. A guess would be worse than none. Its arguments may be no JSON."""
    return replace(row, refused=reason, trigger=None, model=None, engine=None, args=(), kwargs={})


def named_apart(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with names of their own: a name that is there already gets a number."""
    found: list[Row] = []
    taken: set[str] = set()
    for row in rows:
        if len(found) == ROWS_LIMIT:
            raise InvalidOptions(f"more than {ROWS_LIMIT:,} schedules; an import reads no more")
        name, number = row.name, 1
        while name in taken:
            number += 1
            name = f"{row.name}-{number}"
        taken.add(name)
        same = row.task == row.name
        found.append(replace(row, name=name, task=name if same else row.task))
    return found
