"""Run: one durable intent to call a task, with its state."""

from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from rota.domain.decision import Reason
from rota.domain.failure import Failure as Failure
from rota.domain.fan import Gathers, Spreads
from rota.domain.guards import Cooldown, Guards
from rota.domain.policy import Policy
from rota.domain.tail import unpacked

ATTEMPTS_KEPT = 20
DIGITS = 5
"""Decimal digits of stored instants, so 10 microseconds: JSON numbers of fifteen digits keep them until the year
2286."""


@lru_cache(64)
def after(now: float, seconds: float) -> float:
    """Return the instant `seconds` after `now`, rounded to DIGITS and never rounded down. Python rounds slowly, and the
    runs of a batch ask for the same instant."""
    later = round(now + seconds, DIGITS)
    return later if later >= now + seconds else round(later + 10**-DIGITS, DIGITS)


DEFAULT_QUEUE = "default"
"""The queue of a run whose submit, schedule and task name none. Stores keep nothing for it."""

UNIQUE_ROW, WINDOW_ROW = "unique ", "window "
"""The marks of shared unique keys, and of the windows of one task, belong to a task of this name and the name that the
tasks share, or the name of the task. No task can have such a name, because the name of a task has no space."""

FAR_AHEAD = 3600.0
"""A clock that is more seconds ahead than this is taken for wrong."""


def onwards(latest: float, here: float) -> float:
    """Return the time of a store: the clock's reading `here`, but never less than `latest`, the store's last time.

    If `latest` is more than FAR_AHEAD ahead of `here`, an earlier clock was wrong and the time goes back to `here`.
    Otherwise nothing would happen until the clock reaches `latest`.
    """
    return max(latest, here) if latest < here + FAR_AHEAD else here


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    final: bool

    def __init__(self, word: str) -> None:
        self.final = word in ("succeeded", "failed", "cancelled")


_RUNNING = State.RUNNING
FINAL = frozenset(state for state in State if state.final)


def storable(text: object, limit: int) -> str:
    """Return `text` as a string of at most `limit` characters that every store can keep.

    Lone surrogates have no UTF-8 form and are replaced.
    """
    return str(text).encode(errors="replace").decode()[:limit]


class Attempt(Struct, frozen=True, omit_defaults=True, gc=False):
    """One claim of a run and how the claim ended. The instants come from the store's clock."""

    fence: int
    worker: str
    outcome: str
    claimed_at: float
    ended_at: float
    seconds: float | None = None
    error: Failure | None = None
    warnings: tuple[str, ...] = ()
    log: str = ""
    """The end of what the handler logged, compressed; see `logged`."""
    trace: str = ""
    """The span of the call, as `traceparent` of W3C Trace Context; empty if the worker had no tracer."""

    @property
    def logged(self) -> str:
        """The end of what the handler logged, if its task has `logs=True`."""
        return unpacked(self.log)


class Progress(Struct, frozen=True, omit_defaults=True):
    """The progress that a running handler reports: a share from 0 to 1 and a message."""

    share: float
    message: str = ""


class Origin(Struct, frozen=True, omit_defaults=True):
    """What made a run.

    `kind` is submit, touch, retry, schedule, run_now, flow, plan or fan. `of` is what is behind it: the run, schedule,
    flow or fan. `nominal` is the nominal time of the tick. `period` is the name of the period that the run belongs to.
    """

    kind: str = "submit"
    of: str | None = None
    nominal: float | None = None
    period: str | None = None


class Member(Struct, frozen=True, omit_defaults=True):
    """Which group a run belongs to, and as what. A group is a period of a flow, a chain or a plan.

    `step` is the name of the step. `stops`: if the run fails, the waiting runs of its group are cancelled. `takes` maps
    parameters of the call to the steps whose results they get, named as in `domain.needs`. `coded`: the code of the
    flow decides at the call whether the step runs and with which arguments. `spreads` and `gathers` are for the two
    ends of a fan (`domain.fan`).
    """

    group: str
    step: str = ""
    stops: bool = False
    takes: dict[str, str] = {}
    coded: bool = False
    spreads: Spreads | None = None
    gathers: Gathers | None = None


class Callback(Struct, frozen=True, omit_defaults=True):
    """A call that the end of a run makes: `task` is called if the run ends in `state`."""

    state: State
    task: str
    policy: Policy = Policy()
    priority: int = 0
    queue: str = DEFAULT_QUEUE


class CallbackRun(Struct, frozen=True, array_like=True):
    """The run of a callback, made at the submit. The store keeps it aside, and puts it in the transaction that ends the
    first run in `state`."""

    state: State
    id: str
    task: str
    body: str
    priority: int = 0
    queue: str = DEFAULT_QUEUE

    def to_run(self) -> "NewRun":
        body = self.body.encode()
        return NewRun(id=self.id, task=self.task, body=body, priority=self.priority, queue=self.queue)


class RunHead(Struct, frozen=True, gc=False):
    """The fields of a run that the rules read, without arguments and policies. Instants are Unix seconds by the store's
    clock.

    `needs` names what the run waits for (`domain.needs`). `awaited`: other runs wait for the end of this run.
    `cooldowns` are the rules that are checked when a run that waited behind another run of its key may start.
    `touches` counts the submits, touches and ticks that the run answers: the first one and those that joined it.
    `touched_at` is the time of the last of them. `queue` says which workers may claim the run. `share` is the text by
    which waiting runs of the task take turns (`policy.Share`).

    `gc=False`: a frozen struct of plain values is in no reference cycle, and a store or a worker has many of them.
    """

    id: str
    state: State = State.QUEUED
    due_at: float = 0.0
    expires_at: float | None = None
    fence: int = 0
    failures: int = 0
    losses: int = 0
    worker: str | None = None
    claimed_at: float | None = None
    until: float | None = None
    cancel_requested: bool = False
    pause_requested: bool = False
    parked: bool = False
    reason: Reason | None = None
    note: str | None = None
    error: Failure | None = None
    finished_at: float | None = None
    attempts: tuple[Attempt, ...] = ()
    progress: Progress | None = None
    task: str = ""
    key: str | None = None
    unique_key: str | None = None
    writes_mark: bool = False
    priority: int = 0
    created_at: float = 0.0
    needs: tuple[str, ...] = ()
    awaited: bool = False
    cooldowns: tuple[Cooldown, ...] = ()
    touches: int = 1
    touched_at: float = 0.0
    queue: str = DEFAULT_QUEUE
    share: str | None = None
    result: bytes | None = None
    saved: bytes | None = None

    def is_leased_to(self, fence: int, worker: str) -> bool:
        """Return whether `worker` has the run by the claim with this `fence`.

        The fence alone is not enough: a server that loses its last writes at a failover gives the same fence again.
        """
        return self.state is _RUNNING and self.fence == fence and self.worker == worker

    @property
    def mark_key(self) -> str:
        """The key under which the mark of this run is stored."""
        return self.unique_key or self.key or ""


class Run(RunHead, frozen=True, gc=False):
    """A whole run as a store returns it. `body` is its stored form and may have fields of a newer version."""

    args: bytes = b"{}"
    origin: Origin = Origin()
    policy: Policy = Policy()
    member: Member | None = None
    body: bytes = b""
    headers: dict[str, str] = {}
    on_end: tuple[Callback, ...] = ()
    unique_in: str | None = None

    @property
    def lease(self) -> "Lease":
        return Lease(self.id, self.fence, self.worker or "")


class Note(Struct, frozen=True, omit_defaults=True):
    """What a running handler stores with its run: its progress, and the checkpoint `saved` for the next attempt."""

    progress: Progress | None = None
    saved: bytes | None = None


class Lease(Struct, frozen=True, gc=False):
    """The right of one worker to one run. Each claim of a run has a higher fence than the claim before."""

    run: str
    fence: int
    worker: str


class NewRun(Struct, frozen=True, kw_only=True, gc=False):
    """A run to put. Delays are relative, so that only the store's clock counts."""

    id: str
    task: str
    body: bytes
    key: str | None = None
    unique_key: str | None = None
    guards: Guards = Guards()
    priority: int = 0
    delay: float = 0.0
    at: float | None = None
    expires_after: float | None = None
    expires_at: float | None = None
    needs: tuple[str, ...] = ()
    group: str | None = None
    queue: str = DEFAULT_QUEUE
    share: str | None = None
    fingerprint: str | None = None
    """Of a run whose submitter gave it its id (`domain.ids`): a put with the same id answers this run."""
    callbacks: tuple[CallbackRun, ...] = ()

    @property
    def cooldowns(self) -> tuple[Cooldown, ...]:
        """The cooldowns to store with a run that waits behind another run of its key; else none."""
        return self.guards.cooldowns if self.guards.behind and self.needs else ()

    @property
    def unique_row(self) -> str | None:
        """The row of unique keys that judges the run beside the holders of its key: that of the name under which tasks
        share their keys, or that of the window of its task. Most runs have none."""
        guards = self.guards
        if self.unique_key is None or guards.unique is None or guards.unique == "queued":
            return None
        if guards.unique_in is not None:
            return f"{UNIQUE_ROW}{guards.unique_in}"
        return f"{WINDOW_ROW}{self.task}" if guards.unique == "done" and guards.within is not None else None

    @property
    def writes_mark(self) -> bool:
        """Whether the end of the run is written as a mark. Only marks that a guard reads are written."""
        return self.guards.reads_marks

    def due_at(self, now: float) -> float:
        return after(now, self.delay) if self.at is None else self.at

    def expiry(self, now: float) -> float | None:
        if self.expires_after is not None:
            return after(max(now, self.due_at(now)), self.expires_after)
        return self.expires_at
