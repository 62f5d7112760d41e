"""The values that the verbs of a store take and answer."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from rota.domain.decision import Decision
from rota.domain.guards import Mark

T = TypeVar("T")

OWN_ID_MEMORY = 86_400.0
"""Seconds after the end of a run for which its id is known, if its submitter gave the id; retention may delete the run
before."""
ID_MEMORY = 60.0
"""Seconds for which a store remembers the id of an ended run at least."""
RETRY_WINDOW = 20.0
"""Seconds within which a client ends its own retries; well inside ID_MEMORY."""


class Reply(Struct, Generic[T], frozen=True):
    """The answers to one call, one for each item and in the order of the items."""

    now: float
    """The store's time."""
    items: list[T]


class Fired(Struct, frozen=True):
    """What became of a tick."""

    applied: bool
    """False: the schedule has moved on or changed since the tick was planned, and nothing was changed."""
    decisions: tuple[Decision, ...] = ()
    """One answer for each run of the tick."""


class Declared(StrEnum):
    """What a declaration changed."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    TAKEN = "taken"
    """The schedule of that id belongs to another app; nothing was changed."""
    CONFLICT = "conflict"
    """The terms of the declaration do not hold; nothing was changed."""
    DROPPED = "dropped"
    """The schedule was deleted, as the terms say."""


class Terms(Struct, frozen=True):
    """The terms of a declaration of schedules: all of it is carried out, or nothing.

    `versions` are the versions that schedules must have; 0: no schedule of that id exists. The schedules `drop` are
    deleted. If the store already has all that is declared, and none of `drop`, the answers are `unchanged` whatever the
    versions: so the same declaration can be sent again.
    """

    versions: Mapping[str, int] = {}
    drop: tuple[str, ...] = ()


class Command(StrEnum):
    """What a person can ask of runs, tasks and schedules."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    DROP = "drop"
    """End what waits, and leave alone what runs. A dropped schedule is deleted."""
    DELETE = "delete"
    """Forget runs that ended at least ID_MEMORY ago. Their marks stay. Changes no task and no schedule."""


class Edited(StrEnum):
    """What became of an edit of a run."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    """The run is as the edit says: the edit was sent before, or changes nothing."""
    STALE = "stale"
    """The run is not queued, or its arguments have changed since the edit was made."""


class Freeze(Struct, frozen=True):
    """Nothing starts in this store until an instant by its clock; None: until somebody thaws it."""

    since: float
    until: float | None = None
    note: str | None = None
    by: str | None = None

    def same(self, other: "Freeze") -> bool:
        """Return whether `other` says the same, whenever it began."""
        return (self.until, self.note, self.by) == (other.until, other.note, other.by)

    def in_force(self, now: float) -> bool:
        return self.until is None or self.until > now


class Scope(StrEnum):
    """What the names of a command name: runs by id, tasks by name, schedules by id, or a key of a task: its name, a
    space and the key. A key can be paused and resumed."""

    RUNS = "runs"
    TASKS = "tasks"
    SCHEDULES = "schedules"
    KEYS = "keys"


PAUSED_KEYS = 1000
"""The most keys of a task that are paused at the same time."""


class MarkRow(Struct, frozen=True):
    """What a store remembers of one (task, key)."""

    task: str
    key: str
    mark: Mark | None
    """None in an edit: clear the mark."""


class Plan(Struct, frozen=True):
    """All runs that a group shall have waiting. A put with a plan cancels the other waiting runs of the group."""

    group: str
    keep: frozenset[str] = frozenset()
    """Unique keys of runs that are not put again and not cancelled either."""
    note: str = "no longer in the plan"
    """The note that cancelled runs get."""


class Swept(Struct, frozen=True):
    """What one sweep did."""

    now: float
    """The store's time."""
    expired: int
    """How many runs were cancelled because it is too late to start them."""
    forgotten: int
    """How many ended runs were deleted."""
    more: bool = False
    """The sweep reached its bound of work: another sweep has more to do at once."""
    ended: Sequence[str] = ()
    """Ids of the runs that expired."""


class Hint(Struct, frozen=True):
    """Something may have changed."""

    workers: frozenset[str] = frozenset()
    """There may be work for these workers."""
    runs: frozenset[str] = frozenset()
    """These runs may have changed."""
    resync: bool = False
    """Anything may have changed: hints may have been lost."""
    any_run: bool = False
    """Any run may have changed, but there is no work for a worker that `workers` does not name."""
    events: bool = False
    """There may be new events."""


class DueCount(Struct, frozen=True, order=True, array_like=True):
    """How many runs of one task and queue are due now and have no hold: free workers could start them. The first of
    them is due `since` then."""

    task: str
    queue: str
    count: int
    since: float


class RateRow(Struct, frozen=True):
    """The state of the rate of a task, or of one of its keys: the bucket is full again at `full_at`, if nothing more
    starts. `key` is "" for the task's own rate."""

    task: str
    key: str
    full_at: float


class Depth(Struct, frozen=True):
    """How many unfinished runs one task has; falsy if it has none."""

    task: str
    queued: int
    running: int
    paused: int = 0

    def __bool__(self) -> bool:
        return self.queued + self.running + self.paused > 0
