"""Run: one durable intent to call a task, and where it stands."""

from enum import StrEnum

from msgspec import Struct

from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Guards
from rota.domain.policy import Policy

ATTEMPTS_KEPT = 20
DIGITS = 5
"""Instants are kept to 10 microseconds: what fifteen digits of JSON carry until the year 2286."""


def after(now: float, seconds: float) -> float:
    """An instant so many seconds later, never rounded to an earlier one."""
    later = round(now + seconds, DIGITS)
    return later if later >= now + seconds else round(later + 10**-DIGITS, DIGITS)


FAR_AHEAD = 3600.0
"""Seconds by which a clock can be ahead and still be believed."""


def onwards(latest: float, here: float) -> float:
    """The time of a store whose clock says `here`: never before `latest`, the time as last seen.

    A clock that was more than an hour ahead was wrong. The time goes back then, because standing still until `latest`
    has come would be worse.
    """
    return max(latest, here) if latest < here + FAR_AHEAD else here


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in FINAL


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})


def storable(text: object, limit: int) -> str:
    """What someone said, as text that every store can carry: lone surrogates have no UTF-8 form."""
    return str(text).encode(errors="replace").decode()[:limit]


class Failure(Struct, frozen=True, omit_defaults=True):
    """What went wrong in one call, as text: exceptions themselves never travel."""

    type: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


class Attempt(Struct, frozen=True, omit_defaults=True):
    """One claim of a run and how it ended, stamped by the store's clock."""

    fence: int
    worker: str
    outcome: str
    claimed_at: float
    ended_at: float
    seconds: float | None = None
    error: Failure | None = None
    warnings: tuple[str, ...] = ()


class Progress(Struct, frozen=True, omit_defaults=True):
    """How far a running handler says it is: a share from 0 to 1, and a word."""

    share: float
    message: str = ""


class Origin(Struct, frozen=True, omit_defaults=True):
    """What made a run: a submit, a touch, the retry of another run, a tick of a schedule (`nominal` says which), a flow
    or a plan. `period` is the one that it is for."""

    kind: str = "submit"
    of: str | None = None
    nominal: float | None = None
    period: str | None = None


class Member(Struct, frozen=True, omit_defaults=True):
    """A run's place among others: the period of a flow, a chain or a plan is a group.

    `stops`: should it fail, what its group has waiting is cancelled. `takes` says with whose results it is called:
    the name (`domain.needs`) of another step for each parameter. `coded`: the code of its flow says whether and
    how it is called.
    """

    group: str
    step: str = ""
    stops: bool = False
    takes: dict[str, str] = {}
    coded: bool = False


class RunHead(Struct, frozen=True, gc=False):
    """A run without its bulk: who it is and where it stands. Instants are Unix seconds by the store's clock.

    `needs` is what it waits for (`domain.needs`); `awaited` says that others wait for this very run's end. `rest` are
    the rules by which one that waits behind an equal one is judged again when that has ended. `touches` is how many
    submits, touches or ticks it stands for: the one that made it and those that joined it; `touched_at` is the last of
    them.

    A value made of values can be in no cycle: the collector need not follow the many that a store or a worker holds.
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
    result: bytes | None = None
    saved: bytes | None = None

    def is_leased_to(self, fence: int, worker: str) -> bool:
        """By this worker, since this claim? The fence alone does not say: a server that forgets a claim when another
        takes its place hands the same fence out again."""
        return self.state is State.RUNNING and self.fence == fence and self.worker == worker

    @property
    def mark_key(self) -> str:
        """What its mark is about."""
        return self.unique_key or self.key or ""


class Run(RunHead, frozen=True, gc=False):
    """A run as a store tells it. `wire` is its stored form, with fields that this version may not know."""

    args: bytes = b"{}"
    origin: Origin = Origin()
    policy: Policy = Policy()
    member: Member | None = None
    body: bytes = b""

    @property
    def lease(self) -> "Lease":
        return Lease(self.id, self.fence, self.worker or "")


class Note(Struct, frozen=True, omit_defaults=True):
    """What a running handler leaves with its run: how far it is, and what it needs to go on from there."""

    progress: Progress | None = None
    saved: bytes | None = None


class Lease(Struct, frozen=True):
    """The right of one worker to one run; every claim has a higher fence than the last that the store knows."""

    run: str
    fence: int
    worker: str


class NewRun(Struct, frozen=True, kw_only=True, gc=False):
    """A run on its way into a store. Delays are relative, so that only the store's clock decides."""

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

    @property
    def cooldowns(self) -> tuple[Cooldown, ...]:
        """Rules to keep with a run that waits behind an equal one."""
        return self.guards.cooldowns if self.guards.behind and self.needs else ()

    @property
    def writes_mark(self) -> bool:
        """Will its ending be remembered as a mark? Only where a policy reads it."""
        return self.guards.reads_marks

    def due_at(self, now: float) -> float:
        return after(now, self.delay) if self.at is None else self.at

    def expiry(self, now: float) -> float | None:
        if self.expires_after is not None:
            return after(max(now, self.due_at(now)), self.expires_after)
        return self.expires_at
