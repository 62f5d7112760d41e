"""Leases: app.lease, a named lease for code that stays outside rota.

The code in the block is the worker of a run: each name has one run, of the task `rota.lease:NAME`. Who wants the lease
puts that run, which makes it due, and claims it. At the end of the block the run waits again, for ever. So the lease is
fenced, renewed and rescued as the lease of any run, and people see it, pause it and cancel it as a run.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from rota.client.client import Client, session_of
from rota.client.fleet import LEASE_TASK
from rota.client.handle import accept
from rota.client.retries import patiently
from rota.client.session import Session
from rota.domain import codec
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Guards
from rota.domain.intake import check_name
from rota.domain.kinds import is_number
from rota.domain.lifecycle import Cancelled, Lost, Outcome, Paused, settlement_of
from rota.domain.policy import FAR, Policy
from rota.domain.run import Lease, NewRun, Origin, Run, State
from rota.domain.settlement import Requeue, Settlement
from rota.domain.tuning import DAY, Tuning
from rota.engine.heart import Heart, LoopHeart
from rota.engine.seats import Notes
from rota.errors import InvalidOptions, LeaseLost, StoreError
from rota.store import ClaimRequest, Renewal, RunQuery
from rota.task import new_id

log = logging.getLogger("rota")

LOOK_AGAIN = 1.0
"""Seconds after which who waits for a lease looks again, if no hint came."""
BODY = codec.encode(b"{}", Origin(), Policy(max_losses=1_000_000_000))
"""However many holders have died, the next caller gets the lease."""
FENCES = 1 << 20
"""The fence of a caller is `created_at * FENCES + fence` of the run: if somebody cancels the run, the fences of the
next run of the name are larger all the same."""


class Fence(int):
    """The number of one lease. It is larger than the numbers of all earlier leases of the name: send it along with
    every write, and let the other side refuse a number that is smaller than the largest it has seen."""

    lost: bool = False
    """The lease was lost: another caller may have it. Code in a thread looks here; a block on an event loop is
    interrupted."""


class Held:
    """A lease that a caller has, and what its heart renews."""

    def __init__(self, run: Run, seconds: float, deadline: float, clock: Callable[[], float]) -> None:
        """`deadline` is when the lease lapses by `clock`, unless it is renewed."""
        self.worker = run.worker or ""
        self.run = run
        self.fence = Fence(int(run.created_at) * FENCES + run.fence)
        self.why = ""
        self.scope: asyncio.Timeout | None = None
        self._outcome: Outcome | None = None
        self._over = False
        self._seconds = seconds
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(deadline - clock(), self._lapse)

    def unsettled(self) -> list[Lease]:
        return [] if self._over or self.fence.lost else [self.run.lease]

    def notes(self) -> Notes:
        return {}

    def unrenewed(self, count: int) -> None:
        """The lease lapses by itself, if no later renewal comes through."""

    def renewed(self, leases: Sequence[Lease], answers: Sequence[Renewal], deadline: float, notes: Notes) -> None:
        if self._over:
            return
        match answers[0]:
            case Renewal.OK:
                self._timer.cancel()
                self._timer = self._loop.call_later(deadline - self._clock(), self._lapse)
            case Renewal.LOST:
                self._lose("it lapsed, and another caller may have it")
            case Renewal.CANCEL:
                self._lose("somebody cancelled its run", Cancelled())
            case Renewal.PAUSE:
                self._lose("somebody paused its run", Paused())

    def settlement(self) -> Settlement:
        """Return what the end of the block makes of the run: it waits for the next caller. A command of a person is
        obeyed."""
        if self._outcome is not None:
            return settlement_of(self.run, self._outcome)
        return given_back(self.run.lease)

    def end(self) -> None:
        self._over = True
        self._timer.cancel()

    def _lapse(self) -> None:
        self._lose(f"it could not be renewed for {self._seconds:g} s")

    def _lose(self, why: str, outcome: Outcome | None = None) -> None:
        if self._over or self.fence.lost:
            return
        self.fence.lost, self.why, self._outcome = True, why, outcome
        log.error("lease %s lost: %s", self.run.task.removeprefix(LEASE_TASK), why)
        if self.scope is not None:  # interrupt the block
            self.scope.reschedule(self._loop.time())


def given_back(lease: Lease) -> Settlement:
    """Return the settlement after which the run waits for the next caller: no claim finds it before."""
    return Settlement(lease.run, lease.fence, lease.worker, Requeue(FAR), "released", called=False)


class Leases:
    """Gets and gives back named leases."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client

    @asynccontextmanager
    async def lease(self, name: str, seconds: float, timeout: float | None) -> AsyncGenerator[Fence]:
        async with self._held(name, seconds, timeout) as held:
            held.scope = scope = asyncio.timeout(None)
            try:
                async with scope:
                    yield held.fence
            except TimeoutError:
                if not scope.expired():
                    raise
                raise LeaseLost(f"lease {name}: {held.why}") from None

    @contextmanager
    def lease_sync(self, name: str, seconds: float, timeout: float | None) -> Generator[Fence]:
        portal = self._client().portal
        stack = AsyncExitStack()
        held = portal.call(lambda: stack.enter_async_context(self._held(name, seconds, timeout)))
        try:
            yield held.fence
        finally:
            portal.call(stack.aclose)
        if held.fence.lost:
            raise LeaseLost(f"lease {name}: {held.why}")

    @asynccontextmanager
    async def _held(self, name: str, seconds: float, timeout: float | None) -> AsyncGenerator[Held]:
        """Wait for the lease and renew it until the block ends, with a heart of its own: a blocked event loop does not
        lose the lease."""
        if not is_number(seconds) or not 1 <= seconds <= DAY:
            raise InvalidOptions(f"lease {name!r}: seconds={seconds!r}: from 1 second to a day")
        try:
            task = LEASE_TASK + check_name(name)
            check_name(task)
        except ValueError:
            raise InvalidOptions(f"lease {name!r}: a name without spaces, of 1 to 180 characters") from None
        session = await session_of(self._client())
        try:
            async with asyncio.timeout(timeout):
                held = await _Waiting(session, task, seconds).acquired()
        except TimeoutError:
            raise TimeoutError(f"lease {name} was not free within {timeout:g} s") from None
        heart = (Heart if session.world.threads else LoopHeart)(
            session.backend, held, Tuning(lease=seconds), session.world
        )
        heart.start()
        try:
            yield held
        finally:
            held.end()
            await _release(session, held.settlement())
            await heart.stop()


class _Waiting:
    """One caller that waits for a lease."""

    def __init__(self, session: Session, task: str, seconds: float) -> None:
        self._session = session
        self._task = task
        self._seconds = seconds
        self._worker = f"{task}/{secrets.token_hex(8)}"
        self._claims = 0

    async def acquired(self) -> Held:
        while True:
            heard = self._session.heard
            decision = await self._put()
            if decision.reason is Reason.ALREADY_RUNNING:
                if await self._rescued(decision.run):
                    continue
            else:
                accept(decision)
                if (held := await self._claim()) is not None:
                    return held
            await self._session.news(LOOK_AGAIN, heard)

    async def _put(self) -> Decision:
        """Make the run of the lease due: a new run if there is none, else by a join. A running one refuses."""
        guards = Guards(unique="active", join="set")
        run = NewRun(id=new_id(), task=self._task, body=BODY, unique_key="lease", guards=guards)
        (decision,) = (await patiently(lambda: self._session.store.put([run]))).items
        return decision

    async def _claim(self) -> Held | None:
        """Claim the run, if no other caller was faster. A claim whose caller is cancelled meanwhile is given back."""
        self._claims += 1
        began = self._session.world.monotonic()
        request = ClaimRequest(self._worker, self._claims, [self._task], 1, self._seconds, offers=False)
        claiming = asyncio.ensure_future(patiently(lambda: self._session.store.claim(request)))
        try:
            claim = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            await asyncio.wait((claiming,))
            if not claiming.cancelled() and claiming.exception() is None:
                for run in claiming.result().runs:
                    await _release(self._session, given_back(run.lease))
            raise
        if not claim.runs:
            return None
        return Held(claim.runs[0], self._seconds, began + self._seconds, self._session.world.monotonic)

    async def _rescued(self, id: str) -> bool:
        """Free the lease of a holder that died, as a worker would; there may be no worker."""
        page = await patiently(lambda: self._session.store.runs(RunQuery(ids=[id])))
        lapsed = [run for run in page.runs if run.state is State.RUNNING and (run.until or page.now) <= page.now]
        if lapsed:
            await patiently(lambda: self._session.store.settle([settlement_of(run, Lost()) for run in lapsed]))
        return bool(lapsed)


async def _release(session: Session, settlement: Settlement) -> None:
    try:
        await patiently(lambda: session.store.settle([settlement]))
    except StoreError as error:
        log.warning("lease %s could not be given back, and lapses: %s", settlement.worker, error)
