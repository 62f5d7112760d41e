"""Session: an open store on one event loop, and one reader for everybody there who waits for the end of a run."""

import asyncio
import logging
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress

from rota.client.fleet import PATIENCE, Attendance, unknown_run
from rota.domain.decision import Decision
from rota.domain.run import NewRun, Run
from rota.engine.context import context_here
from rota.engine.waiters import Waiters
from rota.engine.world import REAL, World
from rota.errors import RunNotFound, StoreError, StoreUnavailable
from rota.store import Backend, Hint, Page, RunQuery, Store

log = logging.getLogger("rota")

LOOK_AGAIN = 1.0
"""Seconds after which the reader reads again, if no hint came."""
ALL_AGAIN = 0.1
"""Seconds at least between two reads of all awaited runs."""

Refusal = Callable[[NewRun, Decision], None]


class Session:
    """An open store on one event loop, and who waits there for which run."""

    def __init__(
        self,
        backend: Backend,
        refused: Refusal | None = None,
        look_again: float = LOOK_AGAIN,
        world: World = REAL,
    ) -> None:
        self.refused = refused
        self.backend = backend
        self.world = world
        self._look_again = look_again
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._store: Store | None = None
        self._waiting: dict[str, set[asyncio.Future[Run]]] = {}
        self._since: dict[str, float] = {}
        self._attendance = Attendance()
        self._waiters: weakref.WeakSet[Waiters] = weakref.WeakSet()
        self._watcher: asyncio.Task[None] | None = None
        self._look = asyncio.Event()
        self._hinted: set[str] = set()  # awaited ids to be read at once
        self._read_all_at = self._next_all_at = 0.0  # when all awaited ids were read last, and are read next
        self._news = asyncio.Event()
        self._listening: dict[str, set[asyncio.Event]] = {}
        self.heard = 0
        self.heard_events = 0
        self.users = 0

    @property
    def is_open(self) -> bool:
        return self._store is not None

    async def opened(self) -> None:
        async with self._opening:
            if self._store is None:
                self._store = await self._stack.enter_async_context(self.backend.open())

    @property
    def store(self) -> Store:
        if self._store is None:
            raise StoreUnavailable(f"{self.backend.url} is closed", passing=False)
        return self._store

    async def ended(self, id: str) -> Run:
        """Return the run once it has ended. Tell the engine that the calling handler waits: it keeps its seat."""
        here = context_here.get()
        if here is None or here.waiters is None:
            return await self._ended(id)
        self._waiters.add(here.waiters)
        with here.waiters.waiting(here.run.lease, id):
            return await self._ended(id)

    async def _ended(self, id: str) -> Run:
        future: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, set()).add(future)
        self._since.setdefault(id, asyncio.get_running_loop().time())
        self._start_watching()
        self._hinted.add(id)
        self._look.set()
        try:
            return await future
        finally:
            waiting = self._waiting.get(id, set())
            waiting.discard(future)
            if not waiting:
                self._waiting.pop(id, None)
                self._since.pop(id, None)

    async def news(self, seconds: float, since: int | None = None) -> int:
        """Return when the count of hints differs from `since`, or after `seconds`; return the count."""
        self._start_watching()
        since = self.heard if since is None else since
        try:
            async with asyncio.timeout(seconds):
                while self.heard == since:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            pass
        return self.heard

    async def event_news(self, seconds: float, since: int) -> int:
        """Return when the count of hints about events differs from `since`, or after `seconds`; return the count."""
        self._start_watching()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.heard_events == since:
                    self._news.clear()
                    await self._news.wait()
        return self.heard_events

    @contextmanager
    def listening(self, worker: str) -> Generator[asyncio.Event]:
        """Give an event that is set when there may be work for `worker`. Clear it before the claim, not behind it: then
        no hint between the claim and the wait is missed."""
        self._start_watching()
        event = asyncio.Event()
        self._listening.setdefault(worker, set()).add(event)
        try:
            yield event
        finally:
            events = self._listening[worker]
            events.discard(event)
            if not events:
                del self._listening[worker]

    async def close(self) -> None:
        async with self._opening:  # one close at a time; the second one finds nothing to do
            if self._watcher is not None:
                self._watcher.cancel()
                await asyncio.wait((self._watcher,))
            self._store = None
            await self._stack.aclose()

    def _start_watching(self) -> None:
        if self._watcher is None:
            self._watcher = asyncio.create_task(self._watch(), name="rota waits for results")
            self._watcher.add_done_callback(self._watcher_ended)

    def _watcher_ended(self, watcher: asyncio.Task[None]) -> None:
        """Fail the futures that waited for the watcher; the next wait starts another watcher."""
        self._watcher = None
        error = None if watcher.cancelled() else watcher.exception()
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error or StoreUnavailable(f"{self.backend.url} was closed meanwhile"))

    async def _watch(self) -> None:
        """Read for everybody who waits, as long as the store is open. Retry after an error that passes."""
        while True:
            try:
                return await self._watch_hints()
            except StoreUnavailable as error:
                if not error.passing:
                    raise
                log.warning("cannot listen for results, next try in %.1f s: %s", self._look_again, error)
                await asyncio.sleep(self._look_again)

    async def _watch_hints(self) -> None:
        """Read runs when a hint names an awaited one, and every `look_again` seconds without a hint."""
        loop = asyncio.get_running_loop()
        self._next_all_at = loop.time()
        async with self.store.changes() as hints:
            self._hear_events()  # what happened before is not hinted
            self._call_workers(Hint(resync=True))
            listener = asyncio.create_task(self._listen(hints))
            try:
                while not listener.done():
                    self._look.clear()
                    await self._read(self._wanted(loop.time()))
                    try:
                        left = max(0.0, self._next_all_at - loop.time())
                        async with asyncio.timeout(left if self._waiting else None):
                            await self._look.wait()
                    except TimeoutError:
                        continue
            finally:
                listener.cancel()
                await asyncio.wait((listener,))

    async def _listen(self, hints: AsyncIterator[Hint]) -> None:
        async for hint in hints:
            self.heard += 1
            self._news.set()
            if self._listening:
                self._call_workers(hint)
            if hint.events or hint.resync or hint.any_run:
                self._hear_events()
            if hint.resync or hint.any_run:
                self._next_all_at = min(self._next_all_at, self._read_all_at + ALL_AGAIN)
                self._look.set()
            elif concerned := [id for id in hint.runs if id in self._waiting]:
                self._hinted.update(concerned)
                self._look.set()

    def _call_workers(self, hint: Hint) -> None:
        for worker in self._listening if hint.resync else hint.workers:
            for event in self._listening.get(worker, ()):
                event.set()

    def _hear_events(self) -> None:
        self.heard_events += 1
        self._news.set()

    def _wanted(self, now: float) -> list[str]:
        """Return the hinted ids that somebody waits for; all awaited ids when their time has come."""
        hinted, self._hinted = self._hinted, set()
        if now < self._next_all_at:
            return [id for id in hinted if id in self._waiting]
        self._read_all_at, self._next_all_at = now, now + self._look_again
        return list(self._waiting)

    async def _read(self, ids: Sequence[str]) -> None:
        """Read the runs `ids` and tell everybody who waits for one that has ended.

        An error other than StoreUnavailable may be caused by a single id. Then the runs are read by halves, so that the
        error only reaches whoever waits for that id.
        """
        if not ids:
            return
        try:
            page = await self.store.runs(RunQuery(ids=ids))
        except StoreUnavailable as error:
            log.warning("cannot look for results: %s", error)
            return
        except Exception as error:
            if len(ids) > 1:
                await self._read(ids[: len(ids) // 2])
                await self._read(ids[len(ids) // 2 :])
                return
            self._answer(ids[0], error)
            return
        found = {run.id: run for run in page.runs}
        for id in ids:
            run = found.get(id)
            if run is None:
                self._answer(id, RunNotFound(unknown_run(id)))
            elif run.state.final:
                self._answer(id, run)
        await self._attend(page)

    def _answer(self, id: str, news: Run | Exception) -> None:
        for future in self._waiting.get(id, ()):
            if future.done():
                continue
            if isinstance(news, Exception):
                future.set_exception(news)
            else:
                future.set_result(news)

    async def _attend(self, page: Page) -> None:
        """Warn if a run has been awaited for PATIENCE seconds and no worker is there for it."""
        clock = asyncio.get_running_loop().time()
        late = [run for run in page.runs if clock - self._since.get(run.id, clock) >= PATIENCE]
        if not late:
            return
        for waiters in list(self._waiters):
            waiters.judge(page.runs, page.now)
        try:
            await self._attendance.look(self.store, late, page.now, clock)
        except StoreError as error:
            log.debug("cannot look who works: %s", error)
