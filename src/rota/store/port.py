"""The port: `Store`, the verbs of every store, and `Backend`, which opens a store.

- Every reply carries the store's own time. Callers pass delays in seconds; no verb reads the caller's clock.
- Every verb can be sent again after a lost reply. The second call changes nothing more. It answers the same as the
  first, or, where the answer says what has changed (fire, settle, control, declare, mark, sweep), that nothing has.
  Exception: a refusal is counted again, because a store does not remember refusals by the id of the run; and so is
  an accepted run, in the totals of its task.
- A store raises StoreError and no other exception. It raises Unstorable for a value that it can never store, and only
  to the caller that sent that value.
- A name that nothing can have (with a NUL or a lone surrogate) is valid in reads and commands; it finds nothing.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

from rota.domain.decision import Decision
from rota.domain.edits import RunEdit
from rota.domain.overrides import Overrides
from rota.domain.run import Lease, NewRun, Note
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Settlement, Verdict
from rota.domain.spec import TaskSpec
from rota.domain.tuning import Retention
from rota.store.audit import AuditEntry
from rota.store.claims import Claim, ClaimRequest, Renewal
from rota.store.events import EventPage, EventQuery
from rota.store.optional import HandsOver, SubmitsWithin
from rota.store.queries import ALL_ROWS, Page, RowQuery, RunQuery
from rota.store.reports import MINUTE, Stat
from rota.store.values import (
    Command,
    Declared,
    Depth,
    Edited,
    Fired,
    Hint,
    MarkRow,
    Plan,
    Reply,
    Scope,
    Swept,
    Terms,
)

T = TypeVar("T")


class Reads(Protocol):
    """The verbs that only read. A store has them, and so has a client."""

    async def rows(self, kind: type[T], query: RowQuery = ALL_ROWS) -> Reply[T]:
        """Rows of one `kind`: TaskSpec, WorkerSeen, Schedule, MarkRow, Freeze, Fan, Total, DueCount, RateRow (of one
        `task` and `key`, or of the task itself), DecisionCount or AuditEntry (both latest first)."""
        ...

    async def stats(self, minutes: int | None = 60, every: int = MINUTE) -> Reply[Stat]:
        """Return what workers counted in the last `minutes`, per task and origin, in slots of `every` minutes (MINUTE,
        HOUR or DAY), the oldest slot first. SLOTS_KEPT says for how long slots are kept.

        None: what they have counted since the store was made, one Stat of the minute TOTAL per task; these counts never
        fall."""
        ...

    async def runs(self, query: RunQuery) -> Page:
        """Return one page of the runs that `query` describes."""
        ...

    async def depths(self) -> Reply[Depth]:
        """Return how many unfinished runs each task has."""
        ...


class Store(Reads, Protocol):
    """One open connection to a store, bound to the event loop that opened it."""

    @property
    def hands_over(self) -> HandsOver | None:
        """The claims of a store whose `put` may lease a run to an idle worker; None for other stores."""
        return None

    async def put(
        self, runs: Sequence[NewRun], plan: Plan | None = None, audit: AuditEntry | None = None
    ) -> Reply[Decision]:
        """Make `runs`, or refuse or join them as their guards say. Every run comes into being here or in `fire`.

        A run whose id the store knows is not made again: the answer is the one of the first put, until ID_MEMORY after
        the run has ended. With a `plan`, all runs are put in one transaction, the other waiting runs of the plan's
        group are cancelled in the same transaction, and one answer for each cancelled run follows the answers for
        `runs`.

        Runs of one task and key are judged in the order of `runs`. So are runs that share a key (`unique_in`); between
        one that shares a key and one of the same key that does not, the store chooses the order.

        This verb, `fire`, and those from `control` down to `mark` write `audit` in their own transaction, if it is
        given.
        """
        ...

    async def try_put(self, run: NewRun) -> Reply[Decision]:
        """Return what a put of `run` would answer now, by the same rules. Nothing changes, and nothing is counted."""
        ...

    async def fire(self, ticks: Sequence[Tick], audit: AuditEntry | None = None) -> Reply[Fired]:
        """Advance the schedule of each tick and put the runs of the tick, in one transaction per tick.

        A tick is applied only if its schedule still has the version and next time for which the tick was made. A tick
        with `left` is the only one of its schedule in a call.
        """
        ...

    async def claim(self, request: ClaimRequest) -> Claim:
        """Lease at most `request.free` due runs of `request.tasks` in `request.queues` to `request.worker`.

        Runs of higher priority come first, then those that have been due for longest. A claim passes over runs of
        paused and disabled tasks. It counts limits from the leases themselves, and parks runs of a key that has reached
        its limit. A run with losses comes in a batch of its own, and only to a worker that has no other run with
        losses.

        `request.n` numbers the claims of a worker: the same number again answers the same batch.

        The claim also offers lapsed leases of other workers, and due schedules of any task, because a worker needs no
        code to fire a schedule. A claim that leaves seats empty registers the worker as idle, so that a put can hint
        the worker. With `request.offers` False it does neither: `app.lease` claims so.
        """
        ...

    async def renew(
        self, leases: Sequence[Lease], seconds: float, notes: Mapping[str, Note] | None = None
    ) -> Reply[Renewal]:
        """Extend each of `leases` that its worker still has to `seconds` from now.

        A worker still has a lapsed lease until another worker has settled the run as lost. `notes` are what handlers
        noted, by run id; the store keeps them with the runs that are still leased.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> Reply[Verdict]:
        """Record the ending of calls: each settlement is one transaction.

        A settlement is applied only if its run still has the settlement's fence and worker. The transaction records
        the attempt, sets the state, writes the mark, and makes runs due that waited for this one.
        """
        ...

    async def control(
        self,
        command: Command,
        names: Sequence[str],
        note: str | None = None,
        by: str | None = None,
        of: Scope = Scope.RUNS,
        audit: AuditEntry | None = None,
        until: float | None = None,
    ) -> Reply[int]:
        """Carry out `command` for each of `names`, and answer how many things it changed for each name.

        `of` says what `names` are: runs, tasks or schedules. The store records the command as a decision, with `note`
        and with `by`, the person who asks. Waiting runs change at once; running ones change when their worker hears of
        the command. One call ends a bounded number of runs: repeat it until the answer is 0.

        `until` is for the pause of a task: the pause ends by itself at this instant. A later pause moves the end, or
        takes it away; one that would be over already changes nothing. A worker that waits looks again within
        `Backend.poll` seconds after `until`.
        """
        ...

    async def direct(
        self,
        workers: Sequence[str],
        seats: int | None = None,
        quiet: bool | None = None,
        stop: bool = False,
        audit: AuditEntry | None = None,
    ) -> Reply[bool]:
        """Change the orders of each of `workers`, and hint them; False for a worker that is unknown or had these
        orders.

        None leaves an order as it is, and so does `stop=False`: a stop cannot be taken back. A worker reads its orders
        in the answers to its claims. They are forgotten together with the worker.
        """
        ...

    async def override(self, task: str, overrides: Overrides, audit: AuditEntry | None = None) -> Reply[Declared]:
        """Replace what an operator says of `task`: CHANGED; UNCHANGED if it was carried out before; CONFLICT unless the
        version of `overrides` is the one after the stored one.

        Its limit, rate and switch hold for the next put and claim, and a claim answers runs with its retry and
        timeout. No declaration changes it.
        """
        ...

    async def freeze(
        self,
        frozen: bool,
        until: float | None = None,
        note: str | None = None,
        by: str | None = None,
        audit: AuditEntry | None = None,
    ) -> Reply[bool]:
        """Let no run start until the instant `until`, or until a thaw (`frozen=False`). Answer whether that changed
        anything.

        Running runs go on, runs are put and schedules fire as before. Claims take nothing while the store is frozen.
        A worker that waits looks again within `Backend.poll` seconds after `until`.
        """
        ...

    async def fan(self, id: str, total: int | None = None, allowed: int | None = None) -> Reply[bool]:
        """Make the fan `id`, or say its `total`; the first total stays. Answer whether that changed anything.

        The transaction that ends a child of the fan counts the end. When all children have ended, or more than
        `allowed` of them without success (None: all may), the need of the gather (`domain.fan`) is met. Ended children
        are kept until the gather has ended.
        """
        ...

    async def edit(
        self,
        edits: Sequence[RunEdit],
        note: str | None = None,
        by: str | None = None,
        audit: AuditEntry | None = None,
    ) -> Reply[Edited]:
        """Change the due time, the expiry, the priority or the arguments of queued runs, each in one transaction.

        A run that was claimed, paused or ended in between stays as it is: the edit is stale.
        """
        ...

    async def declare(
        self, items: Sequence[TaskSpec | Schedule], terms: Terms | None = None, audit: AuditEntry | None = None
    ) -> Reply[Declared]:
        """Publish what the code says about tasks and schedules. The last declaration wins; a pause stays.

        A schedule that is declared unchanged keeps its next tick. A declaration without `terms` removes nothing. With
        `terms`, the declaration is one transaction, and an answer for each schedule of `terms.drop` follows the answers
        for `items`.
        """
        ...

    async def mark(self, edits: Sequence[MarkRow], audit: AuditEntry | None = None) -> Reply[bool]:
        """Set and clear marks; False for an edit that changes nothing. Runs that waited for a mark may start."""
        ...

    async def audit(self, entries: Sequence[AuditEntry]) -> Reply[bool]:
        """Keep entries about what no verb judges, such as what was refused; False for an entry that is there already.

        A store keeps AUDIT_KEPT entries. `rows(AuditEntry)` reads them, the latest first.
        """
        ...

    async def events(self, query: EventQuery) -> EventPage:
        """Return one page of events, and make the store record events for at least SUBSCRIBED / 2 seconds from now on.

        A verb records what it made of each run, task and schedule in its own transaction, while somebody reads events.
        So no event tells of what was rolled back. The events of a run come in the order of its changes. A page has no
        event behind one that may still be committed: whoever reads from cursor to cursor misses none.

        If the store no longer knows all that came after `query.after`, the page begins with one event named "gap": a
        sweep has deleted events, nobody read them for SUBSCRIBED seconds, or the store has lost its data.
        """
        ...

    async def sweep(self, retention: Retention) -> Swept:
        """Cancel runs that are too late to start, and delete ended runs as `retention` says; bounded work per call."""
        ...

    def changes(self, worker: str | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        """Hints from now on. They may be lost, merged or false: whoever needs the truth also polls.

        With `worker`, the store may leave out hints that concern neither work for that worker nor its own runs.
        """
        ...


class Backend(Protocol):
    """Where a store lives. It can be opened many times, on any event loop."""

    @property
    def url(self) -> str:
        """The address for people to read, with secrets masked."""
        ...

    @property
    def poll(self) -> float:
        """Seconds after which an idle worker claims again, if no hint came."""
        ...

    @property
    def skew(self) -> float:
        """For tests: seconds by which this backend's clock is ahead."""
        ...

    @skew.setter
    def skew(self, seconds: float) -> None: ...

    @property
    def submits_within(self) -> SubmitsWithin | None:
        """How to put a run in a transaction of the caller's own; None if the store shares no database with callers."""
        return None

    def open(self) -> AbstractAsyncContextManager[Store]:
        """Return an open store, closed at the end of the `with`."""
        ...
