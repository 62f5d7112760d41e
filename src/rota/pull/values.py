"""What a pull worker asks and says, and what it is answered: the same words over a store and over HTTP."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from rota.domain.policy import FAR
from rota.domain.run import Failure, Run
from rota.domain.settlement import Verdict
from rota.store import Renewal

MOST_RUNS = 100
"""Runs in one claim, and leases or outcomes in one request."""
MOST_WAIT = 60.0
MOST_TASKS = 1000
LAST_NUMBER = 1 << 40
"""The largest number of a claim."""

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
WorkerName = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._:@-]+$")]
Fence = Annotated[int, Meta(ge=0, le=LAST_NUMBER)]
Seconds = Annotated[float, Meta(ge=0, le=FAR)]
LeaseSeconds = Annotated[float, Meta(ge=1, le=3600)]
Words = Annotated[str, Meta(max_length=100_000)]


class WorkerReport(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a pull worker says of itself, for `rota workers`."""

    host: Annotated[str, Meta(max_length=200)] = ""
    pid: Annotated[int, Meta(ge=0, le=1 << 31)] = 0
    version: Annotated[str, Meta(max_length=100)] = ""
    seats: Annotated[int, Meta(ge=0, le=10_000)] = 0


class ClaimBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ask for at most `free` due runs of `tasks`. `n` numbers the claims of the worker: the same number again answers
    the same batch. `wait`: answer when there is a run, or after so many seconds."""

    worker: WorkerName
    n: Annotated[int, Meta(ge=1, le=LAST_NUMBER)]
    tasks: Annotated[list[Name], Meta(max_length=MOST_TASKS)]
    free: Annotated[int, Meta(ge=0, le=MOST_RUNS)] = 1
    lease: LeaseSeconds = 30.0
    wait: Annotated[float, Meta(ge=0, le=MOST_WAIT)] = 0.0
    queues: Annotated[list[Name], Meta(max_length=MOST_RUNS)] = []
    report: WorkerReport = WorkerReport()


class PulledRun(Struct, frozen=True):
    """A run that is leased to a pull worker."""

    id: str
    task: str
    args: dict[str, Any]
    key: str | None
    fence: int
    attempt: int
    until: datetime
    """When the lease lapses, unless it is renewed."""
    deadline: datetime | None
    """When the timeout of the run is over."""
    headers: dict[str, str]
    saved: Any
    """The checkpoint of the call before."""
    results: dict[str, Any]
    """Of a step of a flow: the results of the steps that it takes, by their names. Null: that step has failed; a step
    whose run is no longer kept is left out."""


class Pulled(Struct, frozen=True):
    """What a claim answers. `wake`: seconds until the next claim makes sense, if the batch is empty."""

    now: datetime
    n: int
    runs: list[PulledRun]
    wake: float | None
    quiet: bool
    """Somebody asks the worker to start no more runs."""
    stop: bool
    """Somebody asks the worker to stop."""


class PullLease(Struct, frozen=True, forbid_unknown_fields=True):
    run: Name
    fence: Fence


class PullProgress(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    share: Annotated[float, Meta(ge=0, le=1)]
    message: Annotated[str, Meta(max_length=500)] = ""


class PullNote(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the worker stores with a run: its progress, and a checkpoint for the next call."""

    progress: PullProgress | None = None
    saved: Any = None


class RenewBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Extend these leases to `lease` seconds from now. `notes` are by run."""

    worker: WorkerName
    leases: Annotated[list[PullLease], Meta(max_length=MOST_RUNS)]
    lease: LeaseSeconds = 30.0
    notes: Annotated[dict[str, PullNote], Meta(max_length=MOST_RUNS)] = {}


class Renewed(Struct, frozen=True):
    """One word per lease, in order. `lost`: the run is no longer the worker's, which should drop it."""

    now: datetime
    items: list[Renewal]


OutcomeWord = Literal[
    "succeeded",
    "failed",
    "retry_after",
    "snooze",
    "discard",
    "release",
    "skipped",
    "timed_out",
    "cancelled",
    "paused",
]


class PullError(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    message: Words = ""
    type: Annotated[str, Meta(max_length=200)] = "Error"
    traceback: Words = ""


class PullOutcome(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What happened to one run; the rules of its task decide what comes of that. `after` are the seconds of
    `retry_after` and `snooze`; `seconds` is how long the call took."""

    run: Name
    fence: Fence
    outcome: OutcomeWord
    result: Any = None
    error: PullError | None = None
    after: Seconds = 0.0
    seconds: Seconds | None = None
    saved: Any = None


class SettleBody(Struct, frozen=True, forbid_unknown_fields=True):
    worker: WorkerName
    outcomes: Annotated[list[PullOutcome], Meta(max_length=MOST_RUNS)]


class Settled(Struct, frozen=True):
    """One word per outcome, in order: `applied`; `already`, if it was applied before; `stale`, if the run is no longer
    the worker's, and nothing changed."""

    now: datetime
    items: list[Verdict]


def instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def pulled(run: Run, results: dict[str, Any]) -> PulledRun:
    """Return the run as a pull worker sees it, with the results of the steps before it."""
    claimed = run.claimed_at or 0.0
    timeout = run.policy.timeout
    return PulledRun(
        id=run.id,
        task=run.task,
        args=msgspec.json.decode(run.args),
        key=run.key,
        fence=run.fence,
        attempt=run.failures + run.losses + 1,
        until=instant(run.until or claimed),
        deadline=None if timeout is None else instant(min(claimed + timeout, _LAST)),
        headers=dict(run.headers),
        saved=None if run.saved is None else msgspec.json.decode(run.saved),
        results=results,
    )


_LAST = 253_402_300_799.0


def failure_of(error: PullError | None, word: str) -> Failure:
    found = error or PullError(f"the worker said: {word}")
    return Failure(found.type or "Error", found.message, found.traceback)
