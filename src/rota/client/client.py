"""Client: how a process reaches its store. A client opens the store once per event loop, when it is first needed."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from rota.client.audit import current_author
from rota.client.fleet import late_words
from rota.client.late_store import LateStore
from rota.client.portal import Portal, refuse_on_a_loop
from rota.client.retries import patiently
from rota.client.session import LOOK_AGAIN, Refusal, Session
from rota.client.submissions import SubmitHook, prepared
from rota.client.verbs import Verbs
from rota.client.watched import watched
from rota.domain.answers import Why
from rota.domain.arguments import Signature
from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun, Run
from rota.domain.trial import Trial, trial_of
from rota.engine.events import announce_unstarted
from rota.engine.hooks import Hooks
from rota.engine.traces import decided, observed, sending
from rota.errors import StoreError, StoreUnavailable
from rota.store import RETRY_WINDOW, Backend, Plan, PutDirectly, Reads, Reply, put_directly

ROOM_AGAIN = 0.5
"""Seconds after which a submit tries a full queue again, if no hint came."""
TOUCH = 2.0
"""Seconds after which a touch is given up."""
TOUCH_AGAIN = 1.5
"""Seconds after an unanswered touch during which other touches are given up at once."""
LAST_LOOK = 2.0
"""Seconds for the last read of a run whose result did not come within the caller's timeout."""

Disabled = Callable[[str], bool]
Explain = Callable[[Reads, str], Awaitable[Why]]
SignatureOf = Callable[[str], Signature | None]


def _nothing_is_disabled(task: str) -> bool:
    return False


def _no_code(task: str) -> Signature | None:
    return None


class Client(Verbs):
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
        super().__init__(backend, refused)
        self.portal = portal or Portal()
        self._disabled = disabled
        self._hooks = hooks
        self.patience = RETRY_WINDOW
        """Seconds within which a put reaches the store; then it raises StoreUnavailable."""
        self.trace_create = False
        """Whether each run of a put of several has a span of its own."""
        self.explain: Explain | None = None
        """Says why a run does not run; the app gives it."""
        self.signature_of: SignatureOf = _no_code
        """The signature of a task whose code this process has; the app gives it."""
        self.before_submit: Sequence[SubmitHook] = ()
        self._no_touch_before = 0.0  # monotonic clock; 0 while the store answers

    async def put(self, runs: Sequence[NewRun], plan: Plan | None = None) -> Reply[Decision]:
        """Admit runs in one transaction: an answer per run, then one for each run that the plan cancelled."""
        if self.before_submit:
            runs = [self.prepared(run) for run in runs]
        disabled = {task for task in {run.task for run in runs} if self._disabled(task)}
        refused = {place: no for place, run in enumerate(runs) if disabled and (no := self.refusal(run)) is not None}
        wanted = [run for place, run in enumerate(runs) if place not in refused] if refused else runs
        with sending(wanted, self.trace_create) as carrying:
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

    async def submit(self, run: NewRun, wait: float = 0.0) -> Decision:
        """Admit a run; while the queue is full, wait for room, at most `wait` seconds."""
        run = self.prepared(run)
        if (refusal := self.refusal(run)) is not None:
            return refusal
        if not observed():
            return await self._submit(run, wait)
        with sending((run,)) as (run,):
            decision = await self._submit(run, wait)
            decided((decision,))
        return decision

    async def _submit(self, run: NewRun, wait: float) -> Decision:
        audit = self._audited_put((run,))
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait
        while True:
            session = await self._session()
            heard, store = session.heard, watched(session.store, self.observe)
            reply = await patiently(partial(store.put, (run,), None, audit), self.patience)
            decision = reply.items[0]
            if decision.reason is Reason.ACCEPTED:
                return decision
            left = deadline - clock()
            if decision.reason is not Reason.QUEUE_FULL or left <= 0:
                if not decision and session.refused is not None:
                    session.refused(run, decision)
                return decision
            await session.news(min(left, ROOM_AGAIN), heard)

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


def submit_sync(client: Client, run: NewRun, wait: float, portal: Portal) -> Decision:
    """Admit a run from synchronous code, as `Client.submit` does: directly if the store can, else over the portal."""
    put = put_directly(client.backend)
    watched = client.observe is not None or current_author() is not None
    if put is None or watched or portal.is_replaced or client._disabled(run.task):  # pyright: ignore[reportPrivateUsage]
        return portal.call(lambda: client.submit(run, wait))
    refuse_on_a_loop()
    run = client.prepared(run)
    if not observed():
        return _submit_directly(client, put, run, wait, portal)
    with sending((run,)) as (run,):
        decision = _submit_directly(client, put, run, wait, portal)
        decided((decision,))
    return decision


def _submit_directly(client: Client, put: PutDirectly, run: NewRun, wait: float, portal: Portal) -> Decision:
    decision = put(run)
    if decision is None or (decision.reason is Reason.QUEUE_FULL and wait > 0):
        return portal.call(lambda: client._submit(run, wait))  # pyright: ignore[reportPrivateUsage]
    if not decision:
        portal.call(lambda: _announce_refused(client, run, decision))
    return decision


async def _announce_refused(client: Client, run: NewRun, decision: Decision) -> None:
    """Tell the hooks that a guard refused `run`; they need a loop."""
    if client._refused is not None:  # pyright: ignore[reportPrivateUsage]
        client._refused(run, decision)  # pyright: ignore[reportPrivateUsage]


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
