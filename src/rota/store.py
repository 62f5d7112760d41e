"""The Store port: what every backend promises, in few verbs. The contract suite in `rota.testing` holds it to them.

Every reply carries the store's own time. Delays go in relative; no verb trusts the caller's clock.
Every verb may be sent again after a lost reply: it changes nothing more, and answers the same or, where it tells what
it changed (fire, settle, ask, declare, mark, sweep), that it is so already. Only a decision not to make a run counts
again, for it is not remembered by the id of the run.

A store raises StoreError and nothing else: Unstorable for a value that it can never keep, which fails no caller but its
own. To read or to ask about a name that nothing can have (a NUL, a lone surrogate) finds nothing.
"""

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from rota.domain.decision import Decision
from rota.domain.guards import Mark
from rota.domain.run import Lease, NewRun, Note, Run, State
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Settlement, Verdict
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions

T = TypeVar("T")

ID_MEMORY = 60.0
"""Seconds for which the id of an ended run is remembered at least."""
RETRY_WINDOW = 20.0
"""Seconds within which a client ends its own retries; well inside ID_MEMORY."""
OFFERS = 100
"""At most so many lapsed leases come with one claim."""
DUE_SCHEDULES = 1000
"""At most so many due schedules come with one claim."""
OFFER_AGAIN = 2.0
"""Seconds after which an item offered to one claimer is offered to another."""
IDLE_MEMORY = 15.0
"""Seconds after which a silent idle worker is no longer hinted."""


class Reply(Struct, Generic[T], frozen=True):
    """Answers in the order of the questions, and the store's time."""

    now: float
    items: list[T]


class ClaimRequest(Struct, frozen=True):
    """What a worker asks for in one claim."""

    worker: str
    """The worker's name."""
    n: int
    """The number of this claim among those of the worker. The same number again answers the same batch."""
    tasks: Sequence[str]
    """The tasks whose runs the worker can call."""
    free: int
    """How many runs the worker has room for."""
    lease: float
    """Seconds for which the worker holds the runs that it gets."""
    report: "Report | None" = None
    """The worker's heartbeat; applied once per `n`."""
    ready: str | None = None
    """A token: the worker may be handed a run by a put."""
    took: str | None = None
    """The run that the worker was handed, and started, since its last claim."""


class Claim(Struct, frozen=True):
    """What a claim found. `wake` is seconds until this worker should look again, if anything is coming.

    `passed_over` says that due work was passed over which this worker may take once one of its own runs has ended.
    `schedules` are those whose time to fire has come: whoever gets them plans their ticks and fires them.
    `hands` says that this store hands runs to workers that are ready.
    `ended` are runs that this claim found too late to start, by id.
    """

    now: float
    runs: list[Run]
    lapsed: list[Run]
    wake: float | None
    passed_over: bool = False
    schedules: list[Schedule] = []
    hands: bool = False
    ended: Sequence[str] = ()


class Fired(Struct, frozen=True):
    """What became of a tick: not applied if its schedule has moved on or changed since; else an answer per run."""

    applied: bool
    decisions: tuple[Decision, ...] = ()


class Declared(StrEnum):
    """What a declaration changed. Taken: the schedule of that id belongs to another app, nothing was changed."""

    ADDED = "added"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    TAKEN = "taken"


class Renewal(StrEnum):
    OK = "ok"
    LOST = "lost"
    CANCEL = "cancel"
    PAUSE = "pause"


class Command(StrEnum):
    """What can be asked of runs, tasks and schedules. Drop ends what waits and leaves alone what runs; a dropped
    schedule is gone."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    DROP = "drop"


class Scope(StrEnum):
    """What a command is about: runs by id, whole tasks by name, schedules by id."""

    RUNS = "runs"
    TASKS = "tasks"
    SCHEDULES = "schedules"


class Tally(Struct, frozen=True, omit_defaults=True):
    """What a worker counted for one task since its last report; histograms by `bucket` of seconds."""

    task: str
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    other: int = 0
    waits: dict[int, int] = {}
    durations: dict[int, int] = {}


class Report(Struct, frozen=True, omit_defaults=True):
    """A worker's heartbeat, sent with a claim: who it is, what it holds, what it counted."""

    host: str = ""
    pid: int = 0
    version: str = ""
    seats: int = 0
    leased: int = 0
    overdue: int = 0
    tallies: tuple[Tally, ...] = ()
    lease: float = 0.0
    """Seconds for which it holds what it claims; 0 if it does not say."""


class WorkerSeen(Struct, frozen=True):
    """A worker as the store knows it from its last claim."""

    name: str
    tasks: tuple[str, ...]
    seen_at: float
    idle: bool
    report: Report = Report()


class MarkRow(Struct, frozen=True):
    """What is known of one (task, key). As an edit, no mark clears it."""

    task: str
    key: str
    mark: Mark | None


class Stat(Struct, frozen=True):
    """One minute of one task, from the reports of all workers."""

    minute: int
    tally: Tally


def bucket(seconds: float) -> int:
    """The histogram bucket of a time span: two for every doubling, from a millisecond up."""
    return 0 if seconds <= 0.001 else min(80, 1 + int(2 * math.log2(seconds / 0.001)))


def bucket_seconds(index: int) -> float:
    """The upper end of a bucket."""
    return 0.001 * math.pow(2.0, index / 2)


class Plan(Struct, frozen=True):
    """A put of all that a group shall have waiting: what else of it waits is cancelled, but for these unique keys."""

    group: str
    keep: frozenset[str] = frozenset()
    note: str = "no longer in the plan"


class RunQuery(Struct, frozen=True, kw_only=True):
    """Which runs to read, newest first. Ids are exact; the other conditions all hold together. A key is what a run is
    about, or the name that it may not share."""

    ids: Sequence[str] | None = None
    states: Sequence[State] = ()
    task: str | None = None
    key: str | None = None
    group: str | None = None
    limit: int = 50
    cursor: str | None = None


class RowQuery(Struct, frozen=True, kw_only=True):
    """Which rows to read, in the order of their names: these, or all behind `after`. Schedules, marks and decisions
    may be those of one task, marks and decisions those of one key.

    Only an empty page is surely the last: rows that this version cannot read are left out. Go on behind the name of
    the last row.
    """

    names: Sequence[str] | None = None
    task: str | None = None
    key: str | None = None
    after: str = ""
    limit: int = 10_000


ALL_ROWS = RowQuery()


def after_cursor(cursor: str | None) -> int | None:
    """The place in the order of arrival where a page ended."""
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 18:
        raise InvalidOptions(f"cursor {cursor!r} is not where a list of runs ended")
    return int(cursor)


class Page(Struct, frozen=True):
    now: float
    runs: list[Run]
    cursor: str | None


class Retention(Struct, frozen=True, kw_only=True):
    """How long ended runs are kept: by age per state, and by number per task."""

    succeeded: float = 86_400.0
    failed: float = 7 * 86_400.0
    most: int = 10_000
    least: int = 50


class Swept(Struct, frozen=True):
    now: float
    expired: int
    forgotten: int
    more: bool = False
    """The work of one sweep is bounded: there is more to do at once."""
    ended: Sequence[str] = ()
    """The runs that expired, by id."""


class Handed(Struct, frozen=True):
    """A run that a put leased to an idle worker at once; `token` is what that worker's claim gave for it."""

    worker: str
    token: str
    run: Run


class Hint(Struct, frozen=True):
    """Something may have changed: work for these workers, these runs, or (`resync`) anything at all.

    `any_run` says that any run may have changed, but that there is no work for a worker which is not named.
    """

    workers: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()
    resync: bool = False
    handed: Handed | None = None
    any_run: bool = False


class Depth(Struct, frozen=True):
    """How many unfinished runs one task has; falsy if it has none."""

    task: str
    queued: int
    running: int
    paused: int = 0

    def __bool__(self) -> bool:
        return self.queued + self.running + self.paused > 0


class Store(Protocol):
    """One open connection to a store, bound to the event loop that opened it."""

    async def put(self, runs: Sequence[NewRun], plan: Plan | None = None) -> Reply[Decision]:
        """The only door. The same id again answers the same, until ID_MEMORY after the run ended.

        With a plan, all of it is one step, and behind the answers comes one for each run that the plan cancelled.
        """
        ...

    async def fire(self, ticks: Sequence[Tick]) -> Reply[Fired]:
        """Advance each schedule and admit its runs in one step, if it still stands where the tick was planned."""
        ...

    async def claim(self, request: ClaimRequest) -> Claim:
        """At most `free` due runs of these tasks, highest priority first, then the longest due.

        `n` numbers this worker's claims: the same n again answers the same batch. Also offers lapsed leases,
        which are hints: settle judges them again. A claim that leaves seats empty registers the worker as idle,
        so that a put can hint it. Paused and disabled tasks are passed over; limits are counted from real leases; runs
        of a saturated key are parked. A run with losses comes alone, and never beside another one with losses.
        `report` is applied once per n. Due schedules come whatever the tasks are: firing one needs no code.

        A worker that is `ready` (a token: by that it knows what is meant for it), hears hints and finds nothing here
        may be handed a run by the put itself. A hint can get lost: `took` is the one that came so since the last claim,
        and any other that it was handed comes with this one. Until then its lease is short.
        """
        ...

    async def renew(
        self, leases: Sequence[Lease], seconds: float, notes: Mapping[str, Note] | None = None
    ) -> Reply[Renewal]:
        """Extend what is still held, and keep what its handlers noted. A lapsed lease that nobody has rescued is
        still held."""
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> Reply[Verdict]:
        """Compare-and-set on (run, fence, worker), each in one step: attempt, state, mark, and who waited for it."""
        ...

    async def control(
        self,
        command: Command,
        names: Sequence[str],
        note: str | None = None,
        by: str | None = None,
        of: Scope = Scope.RUNS,
    ) -> Reply[int]:
        """A command about runs, tasks or schedules: how many of them each subject changed. Recorded as a decision.

        What waits changes at once, what runs is told through its worker. Ending the runs of a task is bounded work:
        ask again until the answer is 0.
        """
        ...

    async def declare(self, items: Sequence[TaskSpec | Schedule]) -> Reply[Declared]:
        """Publish what the code says of tasks and schedules; the last publish wins, a pause stays.

        A schedule that is declared as it was keeps its next tick; nothing is ever removed.
        """
        ...

    async def mark(self, edits: Sequence[MarkRow]) -> Reply[bool]:
        """Set and clear marks; false where it was so already. Who waits for what is done thereby may start."""
        ...

    async def rows(self, kind: type[T], query: RowQuery = ALL_ROWS) -> Reply[T]:
        """What there is of TaskSpec, WorkerSeen, Schedule, Marked or Decided; the latest Decided first."""
        ...

    async def stats(self, minutes: int = 60) -> Reply[Stat]:
        """Per-minute counts of the last minutes, oldest first."""
        ...

    async def runs(self, query: RunQuery) -> Page: ...

    async def depths(self) -> Reply[Depth]: ...

    async def sweep(self, retention: Retention) -> Swept:
        """Expire what is too late to start and forget what ended long ago; bounded work per call."""
        ...

    def changes(self, worker: str | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        """Hints from now on: they may be lost, merged or false. Polling is the truth.

        With `worker`, a store may leave out hints that do not concern this worker: work for it, and the runs it holds.
        """
        ...


class Backend(Protocol):
    """Where a store lives; it can be opened many times, on any event loop."""

    @property
    def url(self) -> str:
        """For people: secrets masked."""
        ...

    @property
    def poll(self) -> float:
        """Seconds after which an idle worker looks again, if no hint came."""
        ...

    @property
    def skew(self) -> float:
        """Test-only: seconds by which this backend's clock is ahead."""
        ...

    @skew.setter
    def skew(self, seconds: float) -> None: ...

    def open(self) -> AbstractAsyncContextManager[Store]: ...
