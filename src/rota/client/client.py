"""Client: a process's way to the store. It opens one per event loop, when first needed."""

import asyncio
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Self

from rota.client.fleet import late_words, unknown_run
from rota.client.portal import Portal
from rota.client.retrying import patiently as patiently
from rota.client.session import LOOK_AGAIN, Refusal, Session
from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun, Run
from rota.engine.events import tell_unstarted
from rota.engine.hooks import Hooks
from rota.errors import RunNotFound, StoreError, StoreUnavailable
from rota.forks import PerProcess
from rota.store import RETRY_WINDOW, Backend, Plan, RunQuery, Store

ROOM_AGAIN = 0.5
"""Seconds after which a submit tries a full queue again, if no hint came."""
TOUCH = 2.0
"""Seconds after which a touch is given up."""
TOUCH_REST = 1.5
"""Seconds after a touch that the store did not answer, in which touches are given up at once."""
LAST_LOOK = 2.0
"""Seconds for the look at a run that was waited for in vain."""

Sessions = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Session]
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

    async def session(self) -> Session:
        """This loop's open store; opened now if it was not."""
        loop, sessions = asyncio.get_running_loop(), self._per_loop.get()
        session = sessions.get(loop)
        if session is None:
            session = sessions[loop] = Session(self.backend, self._refused)
        await session.opened()
        return session

    def attach(self, loop: asyncio.AbstractEventLoop, session: Session) -> None:
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
        """The run once it has ended; TimeoutError if that takes longer. A last look then says where the run stands: a
        store that does not answer makes that up to LAST_LOOK seconds later."""
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
            raise TimeoutError(words) from None
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
