"""Verbs: the store of the running event loop, and every verb of it that callers outside the engine use."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Self, TypeVar, cast

from msgspec.structs import replace

from rota.client.audit import current_author
from rota.client.fleet import OPERATION_TASK, unknown_run
from rota.client.late_store import LateStore
from rota.client.retries import patiently
from rota.client.session import Refusal, Session
from rota.client.watched import Observe, watched
from rota.domain.codec import decode
from rota.domain.edits import RunEdit
from rota.domain.overrides import Overrides
from rota.domain.run import NewRun, Origin, Run
from rota.domain.schedule import Schedule, Tick
from rota.domain.spec import TaskSpec
from rota.errors import RunNotFound
from rota.forks import PerProcess
from rota.store import (
    ALL_ROWS,
    MINUTE,
    RETRY_WINDOW,
    SUBJECTS_KEPT,
    AuditEntry,
    Backend,
    Command,
    CountsRuns,
    Declared,
    Depth,
    Edited,
    EventPage,
    EventQuery,
    Fired,
    MarkRow,
    Page,
    Reply,
    RowQuery,
    RunCounts,
    RunQuery,
    Scope,
    Stat,
    Store,
    Terms,
    paging,
)
from rota.store.paging import Named

T = TypeVar("T")

Sessions = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Session]


class Verbs:
    """The verbs of a store, each retried within RETRY_WINDOW while the store is unreachable. The first call opens the
    store. A verb that an author sends carries an entry of the audit."""

    def __init__(self, backend: Backend | LateStore, refused: Refusal | None = None) -> None:
        self._backend = backend
        self._refused = refused
        self.observe: Observe | None = None
        """Hears of every verb that was sent."""
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
        if not session.is_open:
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

    async def close(self) -> None:
        session = self._per_loop.get().pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _send(self, verb: Callable[[Store], Awaitable[T]], patience: float = RETRY_WINDOW) -> T:
        store = watched(await self.store(), self.observe)
        return await patiently(lambda: verb(store), patience)

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

    async def counted(self, query: RunQuery, at_most: int) -> RunCounts | None:
        """Return how many runs `query` finds, counted by the store; None if it has to read them to count them."""
        if not query.counts or not isinstance(await self.store(), CountsRuns):
            return None
        return await self._send(lambda store: cast("CountsRuns", store).counted(query, at_most))

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
