"""What workers report about themselves, and how a store shows it."""

import math

from msgspec import Struct


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


ENDINGS = ("succeeded", "failed", "retried", "cancelled", "snoozed", "lost", "other")
"""The fields of a Tally that count how calls ended."""


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
    """What the worker counted since its last report, per task."""
    lease: float = 0.0
    """Seconds for which the worker leases what it claims; 0 if the worker does not say."""
    claim: int = 0
    """The number of the claim that brought this report, if a pull worker sends it; else 0."""


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
    """One minute of one task, summed over the reports of all workers."""

    minute: int
    """Minutes since 1970, UTC; or TOTAL."""
    tally: Tally


TOTAL = 0
"""The minute of a Stat that counts everything since the store was made."""
FINEST = -10
"""The first bucket ends at 2**FINEST seconds, so that the bounds are those of exponential histograms of scale 1: 0.25,
1 and 4 seconds are bounds."""
LAST_BUCKET = 80


def bucket(seconds: float) -> int:
    """Return the histogram bucket of `seconds`: two buckets for every doubling. A bucket holds its upper end."""
    if seconds <= 2.0**FINEST:
        return 0
    return min(LAST_BUCKET, math.ceil(2 * (math.log2(seconds) - FINEST)))


def bucket_seconds(index: int) -> float:
    """Return the upper end of the bucket `index`, in seconds."""
    return math.pow(2.0, FINEST + index / 2)


def microseconds(seconds: float) -> int:
    return round(seconds * 1e6)
