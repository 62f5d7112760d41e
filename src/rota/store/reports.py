"""What workers report about themselves, and how a store shows it."""

import math
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace


class Tally(Struct, frozen=True, omit_defaults=True):
    """What a worker counted for one task since its last report."""

    task: str
    succeeded: int = 0
    """Runs that succeeded."""
    failed: int = 0
    """Runs that failed for good."""
    retried: int = 0
    """Calls that failed and are tried again."""
    cancelled: int = 0
    """Calls that were cancelled, with their runs."""
    snoozed: int = 0
    """Calls that asked to be called again later."""
    lost: int = 0
    """Leases that lapsed, because their worker died or froze."""
    other: int = 0
    """Calls that ended in any other way, such as a pause."""
    waits: dict[int, int] = {}
    """How long runs waited for their start: the number of runs in each `bucket`."""
    durations: dict[int, int] = {}
    """How long calls took: the number of calls in each `bucket`."""
    waited: int = 0
    """The sum of all waits, in microseconds: a whole number adds up to the same in every store."""
    ran: int = 0
    """The sum of all durations, in microseconds."""
    origin: str = ""
    """What made these runs: the kind of their Origin. Empty: of any origin."""


ENDINGS = ("succeeded", "failed", "retried", "cancelled", "snoozed", "lost", "other")
"""The fields of a Tally that count how calls ended."""


WRONG = 2.0
"""Seconds by which a clock may differ from the store's before people hear of it."""


class What(StrEnum):
    """What a Total counts. The store counts what is decided; workers report the rest."""

    DECIDED = "decided"
    """Decisions about runs of a task, by their reason; also how many were accepted."""
    FIRED = "fired"
    """Ticks of a schedule, by the reason of what became of them."""
    LATENESS = "lateness"
    """How late ticks of a schedule were fired: the number of ticks in each `bucket`."""
    LATE_BY = "late_by"
    """The sum of the lateness of all ticks of a schedule, in microseconds."""
    CONFLICT = "conflict"
    """Ticks that another worker had fired before, or whose schedule has changed."""
    STALE = "stale"
    """Endings that the store refused: the lease was lost."""
    UNRENEWED = "unrenewed"
    """Leases that a worker could not renew: the store did not answer, or the lease was lost."""
    POISONED = "poisoned"
    """Runs of a task that failed because their workers died with them, again and again."""
    SUCCEEDED = "succeeded_at"
    """When a run of a schedule last succeeded, in seconds since 1970: the latest one counts, and nothing is added."""


class Total(Struct, frozen=True, omit_defaults=True, order=True, array_like=True):
    """How often something has happened since the store was made, or since the last report of a worker.

    A total never falls. One that workers report and that has not changed for TOTAL_MEMORY is added to the total of the
    name OTHER, so that schedules that come and go leave no rows behind.
    """

    what: str
    name: str
    """The task or the schedule; empty if it is about neither."""
    reason: str = ""
    count: int = 1

    @property
    def id(self) -> tuple[str, str, str]:
        return self.what, self.name, self.reason

    def plus(self, count: int) -> "Total":
        """Return the total after `count` more; for SUCCEEDED, the later one."""
        more = max(self.count, count) if self.what == What.SUCCEEDED else self.count + count
        return Total(self.what, self.name, self.reason, more)


TOTAL_MEMORY = 60 * 86_400.0
"""Seconds for which a store keeps a total that workers report and that does not change."""
OTHER = "_other"
"""The name of what is counted together because there are too many names, or the name is forgotten."""


class Stall(Struct, frozen=True, omit_defaults=True):
    """A call that does not end, or the event loop while something blocked it, and where the program was."""

    what: Literal["call", "loop"]
    seconds: float
    """For how long, so far or in all."""
    stack: str
    """The innermost frames; empty if nothing could look, because a call held the interpreter."""
    task: str = ""
    run: str = ""
    over_for: float | None = None
    """Seconds since it ended; None while it lasts."""


class Report(Struct, frozen=True, omit_defaults=True):
    """A worker's heartbeat, sent with a claim."""

    host: str = ""
    pid: int = 0
    version: str = ""
    """The version of rota that the worker runs."""
    seats: int = 0
    """How many runs the worker can have at once."""
    leased: int = 0
    """How many runs are leased to the worker."""
    overdue: int = 0
    """Calls that outlived their runs and still take a seat."""
    tallies: tuple[Tally, ...] = ()
    """What the worker counted since its last report, per task and origin."""
    totals: tuple[Total, ...] = ()
    """What else the worker counted since its last report."""
    lease: float = 0.0
    """Seconds for which the worker leases what it claims; 0 if the worker does not say."""
    ahead: float = 0.0
    """Seconds by which the clock of the worker's host is ahead of the store's, if it is wrong by more than WRONG."""
    began: float = 0.0
    """When the store first answered the worker, in Unix seconds by the store's clock; 0: not known."""
    claim: int = 0
    """The number of the claim that brought this report, if a pull worker sends it; else 0."""

    stalls: tuple[Stall, ...] = ()
    """Calls that do not end, and the last blockage of the event loop if it was lately."""

    @property
    def kept(self) -> "Report":
        """The report without its counts: what the store keeps with the worker."""
        return replace(self, tallies=(), totals=())


MOST_SEATS = 10_000
"""The most seats that a person may give a worker from afar."""


class Orders(Struct, frozen=True, omit_defaults=True, array_like=True):
    """What people ask of one worker. Kept with the row of the worker; every claim of the worker answers them."""

    seats: int = 0
    """How many runs the worker may have at once; 0: as many as it was started with."""
    quiet: bool = False
    """The worker starts no more runs until this is False again."""
    stop: bool = False
    """The worker stops, as after a signal."""


class WorkerSeen(Struct, frozen=True):
    """A worker as the store knows it from the worker's last claim."""

    name: str
    tasks: tuple[str, ...]
    """The tasks that the worker can call."""
    seen_at: float
    """When the worker last claimed, by the store's clock."""
    idle: bool
    """The worker has free seats and waits for a hint."""
    report: Report = Report()
    """The worker's last report."""
    orders: Orders = Orders()
    """What people ask of the worker."""
    queues: tuple[str, ...] = ()
    """The queues whose runs the worker takes; empty: all queues."""

    def takes(self, task: str, queue: str) -> bool:
        """Return whether the worker takes runs of `task` in `queue`."""
        return task in self.tasks and (not self.queues or queue in self.queues)


class Stat(Struct, frozen=True):
    """A slot of one task and origin, summed over the reports of all workers."""

    minute: int
    """When the slot begins: minutes since 1970, UTC; or TOTAL."""
    tally: Tally


TOTAL = 0
"""The minute of a Stat that counts everything since the store was made, for runs of any origin."""
MINUTE, HOUR, DAY = 1, 60, 24 * 60
"""The lengths of slots, in minutes."""
SLOTS_KEPT = {MINUTE: 2 * DAY, HOUR: 60 * DAY, DAY: 400 * DAY}
"""For how many minutes a store keeps the slots of each length."""


def first_slot(now: float, minutes: int, every: int) -> int:
    """Return the first slot of the length `every` of the last `minutes`, the one that lasts included."""
    return (int(now // 60) - minutes + 1) // every * every


def added(known: Tally | None, new: Tally) -> Tally:
    """Return the sum of two tallies of one task and origin."""
    if known is None:
        return new
    return replace(
        known,
        waits=_summed(known.waits, new.waits),
        durations=_summed(known.durations, new.durations),
        **{name: getattr(known, name) + getattr(new, name) for name in (*ENDINGS, "waited", "ran")},
    )


def _summed(one: dict[int, int], two: dict[int, int]) -> dict[int, int]:
    return {at: one.get(at, 0) + two.get(at, 0) for at in one.keys() | two.keys()}


def of_any_origin(stats: Iterable[Stat]) -> list[Stat]:
    """Return one Stat for each slot and task, in their order."""
    found: dict[tuple[int, str], Tally] = {}
    for stat in stats:
        name = stat.minute, stat.tally.task
        found[name] = added(found.get(name), replace(stat.tally, origin=""))
    return [Stat(minute, tally) for (minute, _), tally in sorted(found.items())]


FINEST = -10
"""The first bucket ends at 2**FINEST seconds, so that the bounds are those of exponential histograms of scale 1: 0.25,
1 and 4 seconds are bounds."""
LAST_BUCKET = 80
_FIRST_END = 2.0**FINEST


def bucket(seconds: float) -> int:
    """Return the histogram bucket of `seconds`: two buckets for every doubling. A bucket holds its upper end."""
    if seconds <= _FIRST_END:
        return 0
    return min(LAST_BUCKET, math.ceil(2 * (math.log2(seconds) - FINEST)))


def bucket_seconds(index: int) -> float:
    """Return the upper end of the bucket `index`, in seconds."""
    return math.pow(2.0, FINEST + index / 2)


def microseconds(seconds: float) -> int:
    return round(seconds * 1e6)
