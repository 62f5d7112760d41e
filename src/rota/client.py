"""Client: a process's way to the store. It opens one per event loop, when first needed, and waits for endings."""

import asyncio
import logging
import time
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Self, TypeVar

from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun, Run
from rota.engine.events import tell_unstarted
from rota.engine.hooks import Hooks
from rota.engine.waiters import Waiters, serving
from rota.errors import RunNotFound, StoreError, StoreUnavailable
from rota.fleet import PATIENCE, Attendance, late_words, unknown_run
from rota.forks import PerProcess
from rota.portal import Portal
from rota.retrying import patiently as patiently
from rota.store import RETRY_WINDOW, Backend, Hint, Page, Plan, RunQuery, Store

log = logging.getLogger("rota")

T = TypeVar("T")
ROOM_AGAIN = 0.5
"""Seconds after which a submit tries a full queue again, if no hint came."""
TOUCH = 2.0
"""Seconds after which a touch is given up."""
TOUCH_REST = 1.5
"""Seconds after a touch that the store did not answer, in which touches are given up at once."""
LOOK_AGAIN = 1.0
"""Seconds after which a waiting client reads again, if no hint came."""

LAST_LOOK = 2.0
"""Seconds for the look at a run that was waited for in vain."""

ALL_AGAIN = 0.1
"""Seconds after which all runs that are waited for are read again, at the soonest."""

Refusal = Callable[[NewRun, Decision], None]
Sessions = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, "Session"]
Disabled = Callable[[str], bool]


def _nothing_is_disabled(task: str) -> bool:
    return False


class Client:
    """`async with app.client():` opens the store now and closes it at the end; otherwise it opens when needed."""

    def __init__(
        self,
        backend: Backend,
        refused: Refusal | None = None,
        disabled: Disabled = _nothing_is_disabled,
        portal: Portal | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        """`disabled` says which tasks this process's own code disables: their runs are refused here, whatever the
        store was told of them. The `portal` is for synchronous code."""
        self.backend = backend
        self.portal = portal or Portal()
        self._refused = refused
        self._disabled = disabled
        self._hooks = hooks
        self.patience = RETRY_WINDOW
        """Seconds within which a submit reaches the store, or raises."""
        self._no_touch_before = 0.0  # monotonic; 0 while the store answers
        self._per_loop = PerProcess[Sessions](weakref.WeakKeyDictionary)  # a forked child opens its own

    async def session(self) -> "Session":
        """This loop's open store; opened now if it was not."""
        loop, sessions = asyncio.get_running_loop(), self._per_loop.get()
        session = sessions.get(loop)
        if session is None:
            session = sessions[loop] = Session(self.backend, self._refused)
        await session.opened()
        return session

    def attach(self, loop: asyncio.AbstractEventLoop, session: "Session") -> None:
        """What runs on this loop talks to the store of this session: that is how a simulation has its own."""
        self._per_loop.get()[loop] = session

    async def __aenter__(self) -> Self:
        (await self.session()).users += 1
        return self

    async def __aexit__(self, *error: object) -> None:
        session = await self.session()
        session.users -= 1
        if session.users <= 0:  # the last one out
            await self.close()

    async def store(self) -> Store:
        return (await self.session()).store

    async def now(self) -> float:
        """The time by the store's clock, which alone decides what is past."""
        store = await self.store()
        return (await patiently(lambda: store.runs(RunQuery(ids=[])))).now

    async def put(self, run: NewRun, patience: float = 0.0) -> Decision:
        """Admit a run; while the queue is full, wait for room as long as `patience`."""
        if (refusal := self.refusal(run)) is not None:
            return refusal
        session = await self.session()
        clock = asyncio.get_running_loop().time
        deadline = clock() + patience
        while True:
            heard = session.heard
            decision = (await patiently(lambda: session.store.put([run]), self.patience)).items[0]
            left = deadline - clock()
            if decision.reason is not Reason.QUEUE_FULL or left <= 0:
                if not decision and session.refused is not None:
                    session.refused(run, decision)
                return decision
            await session.news(min(left, ROOM_AGAIN), heard)

    async def put_all(self, runs: Sequence[NewRun], plan: Plan | None = None) -> list[Decision]:
        """Admit runs in one step of the store: an answer per run, then one for each run that the plan cancelled."""
        refused = {place: no for place, run in enumerate(runs) if (no := self.refusal(run)) is not None}
        wanted = [run for place, run in enumerate(runs) if place not in refused]
        store = await self.store()
        answers = iter((await patiently(lambda: store.put(wanted, plan), self.patience)).items)
        found = [refused[place] if place in refused else next(answers) for place in range(len(runs))]
        return [*found, *answers]

    def refusal(self, run: NewRun) -> Decision | None:
        """The no to a run whose task is disabled in this process's own code."""
        if not self._disabled(run.task):
            return None
        decision = Decision(run.id, Reason.DISABLED)
        if self._refused is not None:
            self._refused(run, decision)
        return decision

    async def touch(self, run: NewRun) -> Decision:
        """One try, one round trip: whoever touches goes on, whatever the answer."""
        if (refusal := self.refusal(run)) is not None:
            return refusal
        now = time.monotonic()
        if now < self._no_touch_before:
            raise StoreUnavailable(f"{self.backend.url} did not answer the last touch")
        if self._no_touch_before:
            self._no_touch_before = now + TOUCH_REST  # this touch probes, the others do not wait for it
        try:
            decision = await self._touch(run)
        except StoreUnavailable:
            self._no_touch_before = time.monotonic() + TOUCH_REST
            raise
        self._no_touch_before = 0.0
        return decision

    async def _touch(self, run: NewRun) -> Decision:
        try:
            async with asyncio.timeout(TOUCH):
                session = await self.session()
                decision = (await session.store.put([run])).items[0]
        except TimeoutError:
            raise StoreUnavailable(f"{self.backend.url} has not answered for {TOUCH:g} s") from None
        if not decision and session.refused is not None:
            session.refused(run, decision)
        return decision

    async def news(self, seconds: float = LOOK_AGAIN, since: int | None = None) -> int:
        """Returns when something in the store may have changed, or after so many seconds.

        The number it gives says how much was heard so far: hand it back as `since`, and nothing that came between
        two calls is missed.
        """
        return await (await self.session()).news(seconds, since)

    async def ended(self, id: str, timeout: float | None = None) -> Run:
        """The run once it has ended; TimeoutError if that takes longer."""
        try:
            async with asyncio.timeout(timeout):
                return await (await self.session()).ended(id)
        except TimeoutError:
            return await self._ended_late(id, timeout or 0.0)

    async def _ended_late(self, id: str, timeout: float) -> Run:
        """The run if it ended in the last moment; else TimeoutError, which says where the run stands."""
        try:
            async with asyncio.timeout(LAST_LOOK):
                ended, words = await late_words(await self.store(), id, timeout)
        except (TimeoutError, StoreError) as error:
            why = f"{self.backend.url} does not answer" if isinstance(error, TimeoutError) else str(error)
            raise TimeoutError(f"no result of run {id} within {timeout:g} s: {why}") from None
        if ended is None:
            raise TimeoutError(words)
        return ended

    async def run(self, id: str) -> Run:
        page = await (await self.store()).runs(RunQuery(ids=[id]))
        if not page.runs:
            raise RunNotFound(unknown_run(id))
        return page.runs[0]

    async def ended_here(self, ids: Sequence[str]) -> None:
        """A call of this process may have ended these runs in the queue: the hooks hear of those that it did."""
        if ids and self._hooks is not None and self._hooks.wanted("cancelled"):
            await tell_unstarted(await self.store(), self._hooks, ids)

    async def close(self) -> None:
        session = self._per_loop.get().pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()


class Session:
    """An open store on one loop, and who waits for which run there."""

    def __init__(self, backend: Backend, refused: Refusal | None = None, look_again: float = LOOK_AGAIN) -> None:
        self.refused = refused
        self._backend = backend
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
        self._hinted: set[str] = set()  # to be read at once, of those waited for
        self._read_all_at = self._next_all_at = 0.0  # when all of them were read last, and are read next
        self._news = asyncio.Event()
        self.heard = 0
        self.users = 0

    async def opened(self) -> None:
        async with self._opening:
            if self._store is None:
                self._store = await self._stack.enter_async_context(self._backend.open())

    @property
    def store(self) -> Store:
        if self._store is None:
            raise StoreUnavailable(f"{self._backend.url} is closed", passing=False)
        return self._store

    async def ended(self, id: str) -> Run:
        """The run once it has ended. A handler that waits here holds a seat meanwhile."""
        served = serving.get()
        if served is None:
            return await self._ended(id)
        waiters, seat = served
        self._waiters.add(waiters)
        with waiters.waiting(seat, id):
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
        """Returns when more was heard than `since`, or after so many seconds."""
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

    async def close(self) -> None:
        async with self._opening:  # one at a time; the second finds nothing to do
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
        """Nobody waits for a watcher that is gone; the next to wait starts another."""
        self._watcher = None
        error = None if watcher.cancelled() else watcher.exception()
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error or StoreUnavailable(f"{self._backend.url} was closed meanwhile"))

    async def _watch(self) -> None:
        """One reader for all who wait, as long as the store is open. A fault that passes is no news for them."""
        while True:
            try:
                return await self._watch_hints()
            except StoreUnavailable as error:
                if not error.passing:
                    raise
                log.warning("cannot listen for results, next try in %.1f s: %s", self._look_again, error)
                await asyncio.sleep(self._look_again)

    async def _watch_hints(self) -> None:
        """Look when a hint concerns one of those who wait, and now and then without."""
        loop = asyncio.get_running_loop()
        self._next_all_at = loop.time()
        async with self.store.changes() as hints:
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
            if hint.resync or hint.any_run:
                self._next_all_at = min(self._next_all_at, self._read_all_at + ALL_AGAIN)
                self._look.set()
            elif concerned := [id for id in hint.runs if id in self._waiting]:
                self._hinted.update(concerned)
                self._look.set()

    def _wanted(self, now: float) -> list[str]:
        """The hinted ids alone, where thousands are waited for; all of them when it is time."""
        hinted, self._hinted = self._hinted, set()
        if now < self._next_all_at:
            return [id for id in hinted if id in self._waiting]
        self._read_all_at, self._next_all_at = now, now + self._look_again
        return list(self._waiting)

    async def _read(self, ids: Sequence[str]) -> None:
        """Tell those who wait for these runs. An error that is not the store's absence may be about one id: then half
        of them are asked for at a time, so that it reaches only whoever waits for that one."""
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
            self._tell(ids[0], error)
            return
        found = {run.id: run for run in page.runs}
        for id in ids:
            run = found.get(id)
            if run is None:
                self._tell(id, RunNotFound(unknown_run(id)))
            elif run.state.final:
                self._tell(id, run)
        await self._attend(page)

    def _tell(self, id: str, news: Run | Exception) -> None:
        for future in self._waiting.get(id, ()):
            if future.done():
                continue
            if isinstance(news, Exception):
                future.set_exception(news)
            else:
                future.set_result(news)

    async def _attend(self, page: Page) -> None:
        """A run that is awaited for a while, and that no worker is there for, is worth a word."""
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
