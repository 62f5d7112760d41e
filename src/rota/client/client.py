"""Client: how a process reaches its store. A client opens the store once per event loop, when it is first needed."""

import asyncio
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Self, TypeVar

from msgspec.structs import replace

from rota.client.audit import current_author
from rota.client.fleet import OPERATION_TASK, late_words, unknown_run
from rota.client.late_store import LateStore
from rota.client.portal import Portal
from rota.client.retries import patiently
from rota.client.session import LOOK_AGAIN, Refusal, Session
from rota.client.submissions import SubmitHook, prepared
from rota.client.watched import Observe, watched
from rota.domain.answers import Why
from rota.domain.codec import decode
from rota.domain.decision import Decision, Reason
from rota.domain.edits import RunEdit
from rota.domain.overrides import Overrides
from rota.domain.run import NewRun, Origin, Run
from rota.domain.schedule import Schedule, Tick
from rota.domain.spec import TaskSpec
from rota.domain.trial import Trial, trial_of
from rota.engine.events import announce_unstarted
from rota.engine.hooks import Hooks
from rota.engine.traces import decided, sending
from rota.errors import RunNotFound, StoreError, StoreUnavailable
from rota.forks import PerProcess
from rota.store import (
    ALL_ROWS,
    MINUTE,
    RETRY_WINDOW,
    SUBJECTS_KEPT,
    AuditEntry,
    Backend,
    Command,
    Declared,
    Depth,
    Edited,
    EventPage,
    EventQuery,
    Fired,
    MarkRow,
    Page,
    Plan,
    Reads,
    Reply,
    RowQuery,
    RunQuery,
    Scope,
    Stat,
    Store,
    Terms,
    paging,
)
from rota.store.paging import Named

T = TypeVar("T")

ROOM_AGAIN = 0.5
"""Seconds after which a submit tries a full queue again, if no hint came."""
TOUCH = 2.0
"""Seconds after which a touch is given up."""
TOUCH_AGAIN = 1.5
"""Seconds after an unanswered touch during which other touches are given up at once."""
LAST_LOOK = 2.0
"""Seconds for the last read of a run whose result did not come within the caller's timeout."""

Sessions = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Session]
Disabled = Callable[[str], bool]
Explain = Callable[[Reads, str], Awaitable[Why]]


def _nothing_is_disabled(task: str) -> bool:
    return False


class Client:
    """`async with app.client():` opens the store now and closes it at the end. Without it, the first call opens the
    store."""

    def __init__(
        self,
        backend: Backend | LateStore,
        refused: Refusal | None = None,
        disabled: Disabled = _nothing_is_disabled,
        portal: Portal | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        """`disabled` says whether the code of this process disables a task: the client refuses runs of that task
        itself, whatever spec the store has. The `portal` runs async calls for synchronous code."""
        self._backend = backend
        self.portal = portal or Portal()
        self._refused = refused
        self._disabled = disabled
        self._hooks = hooks
        self.patience = RETRY_WINDOW
        """Seconds within which a put reaches the store; then it raises StoreUnavailable."""
        self.explain: Explain | None = None
        """Says why a run does not run; the app gives it."""
        self.before_submit: Sequence[SubmitHook] = ()
        self.observe: Observe | None = None
        """Hears of every verb that this client has sent."""
        self._no_touch_before = 0.0  # monotonic clock; 0 while the store answers
        self._per_loop = PerProcess[Sessions](weakref.WeakKeyDictionary)  # a forked child opens its own stores

    @property
    def backend(self) -> Backend:
        """Where the store lives; an app that was given a function asks it now."""
        return self._backend.backend if isinstance(self._backend, LateStore) else self._backend

    @backend.setter
    def backend(self, backend: Backend) -> None:
        self._backend = backend

    async def _session(self) -> Session:
        """Return the session of the running event loop; open its store if it is not open."""
        loop, sessions = asyncio.get_running_loop(), self._per_loop.get()
        session = sessions.get(loop)
        if session is None:
            session = sessions[loop] = Session(self.backend, self._refused)
        await session.opened()
        return session

    async def __aenter__(self) -> Self:
        (await self._session()).users += 1
        return self

    async def __aexit__(self, *error: object) -> None:
        session = await self._session()
        session.users -= 1
        if session.users <= 0:  # nobody else uses this session
            await self.close()

    async def store(self) -> Store:
        """Return the open store of this event loop itself, for calls that must not be retried."""
        return (await self._session()).store

    # -- the verbs of the store: retried within RETRY_WINDOW while the store is unreachable ---------------------------

    async def _send(self, verb: Callable[[Store], Awaitable[T]], patience: float = RETRY_WINDOW) -> T:
        store = watched(await self.store(), self.observe)
        return await patiently(lambda: verb(store), patience)

    async def put(self, runs: Sequence[NewRun], plan: Plan | None = None) -> Reply[Decision]:
        """Admit runs in one transaction: an answer per run, then one for each run that the plan cancelled."""
        if self.before_submit:
            runs = [self.prepared(run) for run in runs]
        disabled = {task for task in {run.task for run in runs} if self._disabled(task)}
        refused = {place: no for place, run in enumerate(runs) if disabled and (no := self.refusal(run)) is not None}
        wanted = [run for place, run in enumerate(runs) if place not in refused] if refused else runs
        with sending(wanted) as carrying:
            audit = self._audited_put(runs)
            reply = await self._send(lambda store: store.put(carrying, plan, audit), self.patience)
            decided(reply.items)
        answers = reply.items
        if refused:
            others = iter(reply.items)
            answers = [*(refused[place] if place in refused else next(others) for place in range(len(runs))), *others]
        return Reply(reply.now, answers)

    async def try_put(self, run: NewRun) -> Trial:
        """Return what a submit of `run` would answer now, guard by guard. Nothing changes."""
        run = self.prepared(run)
        if self._disabled(run.task):
            return trial_of(run, Decision(run.id, Reason.DISABLED), await self.now())
        reply = await self._send(lambda store: store.try_put(run))
        return trial_of(run, reply.items[0], reply.now)

    async def fire(self, ticks: Sequence[Tick], action: str | None = None) -> Reply[Fired]:
        """`action`: what an author does by these ticks, for the audit; None: ticks that are fired for nobody."""
        audit = None if action is None else self._audited(action, [tick.schedule for tick in ticks])[2]
        return await self._send(lambda store: store.fire(ticks, audit))

    async def control(
        self,
        command: Command,
        names: Sequence[str],
        note: str | None = None,
        by: str | None = None,
        of: Scope = Scope.RUNS,
        until: float | None = None,
    ) -> Reply[int]:
        verb = "delete" if (command, of) == (Command.DROP, Scope.SCHEDULES) else command
        note, by, audit = self._audited(f"{of}.{verb}", names, note, by)
        return await self._send(lambda store: store.control(command, names, note, by, of, audit, until))

    async def override(self, task: str, overrides: Overrides) -> Reply[Declared]:
        audit = self._audited("tasks.override", [task], overrides.note, overrides.by)[2]
        return await self._send(lambda store: store.override(task, overrides, audit))

    async def freeze(
        self, frozen: bool, until: float | None = None, note: str | None = None, by: str | None = None
    ) -> Reply[bool]:
        note, by, audit = self._audited("store.freeze" if frozen else "store.thaw", (), note, by)
        return await self._send(lambda store: store.freeze(frozen, until, note, by, audit))

    async def fan(self, id: str, total: int | None = None, allowed: int | None = None) -> Reply[bool]:
        return await self._send(lambda store: store.fan(id, total, allowed))

    async def edit(
        self,
        edits: Sequence[RunEdit],
        note: str | None = None,
        by: str | None = None,
        due_before: Sequence[float] = (),
    ) -> Reply[Edited]:
        """`due_before`: when the runs were due, for the audit; the edits change nothing but their due times."""
        note, by, audit = self._audited("runs.edit", [edit.run for edit in edits], note, by)
        if audit is not None and due_before:
            after = tuple(edit.due_at or 0.0 for edit in edits)[:SUBJECTS_KEPT]
            audit = replace(audit, due_before=tuple(due_before)[:SUBJECTS_KEPT], due_after=after)
        return await self._send(lambda store: store.edit(edits, note, by, audit))

    async def declare(
        self, items: Sequence[TaskSpec | Schedule], terms: Terms | None = None, by_hand: bool = False
    ) -> Reply[Declared]:
        """`by_hand`: a person declares tasks, and the audit tells of it. The tasks of the code are declared all the
        time."""
        ids = [item.id for item in items if isinstance(item, Schedule)]
        names = [*ids, *(() if terms is None else terms.drop)]
        specs = [item.name for item in items if isinstance(item, TaskSpec)] if by_hand else []
        action = "schedules.put" if ids else "schedules.delete" if names else "tasks.put"
        audit = self._audited(action, names or specs)[2] if names or specs else None
        return await self._send(lambda store: store.declare(items, terms, audit))

    async def direct(
        self, workers: Sequence[str], seats: int | None = None, quiet: bool | None = None, stop: bool = False
    ) -> Reply[bool]:
        asked = ("stop", stop), ("quiet", quiet), ("resume", quiet is False)
        action = next((word for word, is_asked in asked if is_asked), "seats")
        audit = self._audited(f"workers.{action}", workers)[2]
        return await self._send(lambda store: store.direct(workers, seats, quiet, stop, audit))

    async def mark(self, edits: Sequence[MarkRow]) -> Reply[bool]:
        clears = all(edit.mark is None for edit in edits)
        names = [f"{edit.task} {edit.key}" for edit in edits]
        audit = self._audited("marks.clear" if clears else "marks.set", names)[2]
        return await self._send(lambda store: store.mark(edits, audit))

    async def audit(self, entries: Sequence[AuditEntry]) -> Reply[bool]:
        return await self._send(lambda store: store.audit(entries))

    def _audited(
        self, action: str, names: Sequence[str], note: str | None = None, by: str | None = None
    ) -> tuple[str | None, str | None, AuditEntry | None]:
        """Return the note, the person and the audit entry of a change: those of the author, if there is one."""
        author = current_author()
        if author is None:
            return note, by, None
        return note or author.note, by or author.by, author.entry(action, names, note, by)

    def _audited_put(self, runs: Sequence[NewRun]) -> AuditEntry | None:
        """Return the audit entry about runs that an author puts. Such a put is not shared with other callers."""
        author = current_author()
        if author is None or not runs:
            return None
        kind = (decode(runs[0].body).origin or Origin()).kind
        action = "operations.start" if runs[0].task == OPERATION_TASK else f"runs.{kind}"
        return author.entry(action, [run.id for run in runs])

    async def rows(self, kind: type[T], query: RowQuery = ALL_ROWS) -> Reply[T]:
        reply = await self._send(lambda store: store.rows(kind, query))
        if kind is TaskSpec and query.names is None:  # the rows of named limits and of unique keys are no tasks
            return Reply(reply.now, [row for row in reply.items if " " not in getattr(row, "name", "")])
        return reply

    async def stats(self, minutes: int | None = 60, every: int = MINUTE) -> Reply[Stat]:
        return await self._send(lambda store: store.stats(minutes, every))

    async def runs(self, query: RunQuery) -> Page:
        return await self._send(lambda store: store.runs(query))

    async def depths(self) -> Reply[Depth]:
        return await self._send(lambda store: store.depths())

    async def events(self, query: EventQuery) -> EventPage:
        return await self._send(lambda store: store.events(query))

    def pages(self, query: RunQuery) -> AsyncGenerator[Page]:
        """Yield the runs of `query` in pages of `query.limit`, newest first."""
        return paging.pages(self, query)

    def all_runs(self, query: RunQuery) -> AsyncGenerator[Run]:
        """Yield every run of `query`, newest first."""
        return paging.all_runs(self, query)

    def all_rows(self, kind: type[Named], query: RowQuery = ALL_ROWS) -> AsyncGenerator[Named]:
        """Yield every row of `query`, by name."""
        return paging.all_rows(self, kind, query)

    async def run(self, id: str) -> Run:
        """Return the run as it is now; raise RunNotFound if the store does not know it."""
        found = (await self.runs(RunQuery(ids=[id]))).runs
        if not found:
            raise RunNotFound(unknown_run(id))
        return found[0]

    async def now(self) -> float:
        """Return the time by the store's clock, which alone decides what is past."""
        return (await self.runs(RunQuery(ids=[]))).now

    # -- submitting ---------------------------------------------------------------------------------------------------

    async def submit(self, run: NewRun, wait: float = 0.0) -> Decision:
        """Admit a run; while the queue is full, wait for room, at most `wait` seconds."""
        run = self.prepared(run)
        if (refusal := self.refusal(run)) is not None:
            return refusal
        with sending((run,)) as (run,):
            decision = await self._submit(run, wait)
            decided((decision,))
        return decision

    async def _submit(self, run: NewRun, wait: float) -> Decision:
        session = await self._session()
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait
        while True:
            heard = session.heard
            decision = await self._put_one(run)
            left = deadline - clock()
            if decision.reason is not Reason.QUEUE_FULL or left <= 0:
                if not decision and session.refused is not None:
                    session.refused(run, decision)
                return decision
            await session.news(min(left, ROOM_AGAIN), heard)

    async def _put_one(self, run: NewRun) -> Decision:
        audit = self._audited_put([run])
        return (await self._send(lambda store: store.put([run], None, audit), self.patience)).items[0]

    def prepared(self, run: NewRun) -> NewRun:
        """Return `run` as the hooks before a submit let it pass; raises what a hook raises."""
        return prepared(run, self.before_submit) if self.before_submit else run

    def refusal(self, run: NewRun) -> Decision | None:
        """Return the refusal of a run whose task the code of this process disables; None for other tasks."""
        if not self._disabled(run.task):
            return None
        decision = Decision(run.id, Reason.DISABLED)
        if self._refused is not None:
            self._refused(run, decision)
        return decision

    async def touch(self, run: NewRun) -> Decision:
        """Admit a run with one try and one round trip: whoever touches does not wait for the store."""
        run = self.prepared(run)
        if (refusal := self.refusal(run)) is not None:
            return refusal
        now = time.monotonic()
        if now < self._no_touch_before:
            raise StoreUnavailable(f"{self.backend.url} did not answer the last touch")
        if self._no_touch_before:
            self._no_touch_before = now + TOUCH_AGAIN  # only this touch waits for the store
        try:
            with sending((run,)) as (run,):
                decision = await self._touch(run)
                decided((decision,))
        except StoreUnavailable:
            self._no_touch_before = time.monotonic() + TOUCH_AGAIN
            raise
        self._no_touch_before = 0.0
        return decision

    async def _touch(self, run: NewRun) -> Decision:
        try:
            async with asyncio.timeout(TOUCH):
                session = await self._session()
                decision = (await session.store.put([run])).items[0]
        except TimeoutError:
            raise StoreUnavailable(f"{self.backend.url} has not answered for {TOUCH:g} s") from None
        if not decision and session.refused is not None:
            session.refused(run, decision)
        return decision

    async def news(self, seconds: float = LOOK_AGAIN, since: int | None = None) -> int:
        """Return when something in the store may have changed, or after `seconds`.

        The returned number counts the hints so far. Pass it as `since` to the next call, and no hint between the two
        calls is missed.
        """
        return await (await self._session()).news(seconds, since)

    async def event_news(self, seconds: float, since: int) -> int:
        """Return when there may be new events, or after `seconds`. The number counts the hints, as that of `news`."""
        return await (await self._session()).event_news(seconds, since)

    async def ended(self, id: str, timeout: float | None = None) -> Run:
        """Return the run once it has ended. Raise TimeoutError after `timeout` seconds; the error says in which state
        the run is. If the store does not answer that last read, the error comes up to LAST_LOOK seconds late."""
        try:
            async with asyncio.timeout(timeout):
                return await (await self._session()).ended(id)
        except TimeoutError:
            return await self._ended_late(id, timeout or 0.0)

    async def _ended_late(self, id: str, timeout: float) -> Run:
        """Return the run if it ended in the last moment; else raise TimeoutError, which says in which state the run
        is."""
        try:
            async with asyncio.timeout(LAST_LOOK):
                ended, words = await late_words(await self.store(), id, timeout)
        except (TimeoutError, StoreError) as error:
            why = f"{self.backend.url} does not answer" if isinstance(error, TimeoutError) else str(error)
            raise TimeoutError(f"no result of run {id} within {timeout:g} s: {why}") from None
        if ended is None:
            raise TimeoutError(words) from None
        return ended

    async def ended_here(self, ids: Sequence[str]) -> None:
        """Call the hooks for those of `ids` that ended in the queue. A verb that this process sent may have ended
        them."""
        if ids and self._hooks is not None and self._hooks.wanted("cancelled"):
            await announce_unstarted(await self.store(), self._hooks, ids)

    async def close(self) -> None:
        session = self._per_loop.get().pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()


def attach(client: Client, loop: asyncio.AbstractEventLoop, session: Session) -> None:
    """Make everything that runs on `loop` use the store of `session`. A simulation attaches its own store this way; it
    is a user of the session, so that no `async with app.client():` there closes it."""
    session.users += 1
    client._per_loop.get()[loop] = session  # pyright: ignore[reportPrivateUsage]


async def session_of(client: Client) -> Session:
    """Return the session of the running event loop, for rota's own packages; open its store if it is not open."""
    return await client._session()  # pyright: ignore[reportPrivateUsage]


def move_to(client: Client, backend: Backend | LateStore) -> None:
    """Open another store from now on; what is open stays as it is."""
    client._backend = backend  # pyright: ignore[reportPrivateUsage]
