"""The worker: claims as many runs as it has free seats, and gives each ended one to the settler."""

import asyncio
import logging
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rota.domain.backoff import Backoff
from rota.domain.lifecycle import Failed, Interrupted, Outcome, Released, settlement_of
from rota.domain.plain import plural
from rota.domain.run import Failure, Lease, Note, Run
from rota.domain.settlement import Settlement
from rota.engine.context import Context
from rota.engine.endings import tell_ending
from rota.engine.events import ended, in_hand, tell_stopped, tell_unstarted
from rota.engine.handler import Handler
from rota.engine.handover import HandOver
from rota.engine.hooks import Hooks
from rota.engine.logs import run_here
from rota.engine.rescue import rescue
from rota.engine.runner import Runner
from rota.engine.seat import Seat, Stop
from rota.engine.settler import Settler
from rota.engine.slate import Slate
from rota.engine.steps import FlowCode, Steps
from rota.engine.tallies import Tallies
from rota.engine.ticks import Ticks
from rota.engine.tuning import Tuning
from rota.engine.waiters import Waiters, serving
from rota.engine.world import REAL, World
from rota.errors import StoreError
from rota.store import Claim, ClaimRequest, Handed, Hint, Renewal, Report, Store

log = logging.getLogger("rota")

FIRST_PAUSE, LAST_PAUSE = 0.1, 2.0
"""Seconds between claims while the store is away; it is asked again within two seconds of its return."""
CLEANUP, THREAD_CLEANUP = 6.0, 0.5
REPORT_EVERY = 1.0
"""Seconds between reports; a claim in between carries none."""
HOOK_PATIENCE = 5.0
BACKLOG = 4
"""With so many unrecorded endings per seat, claiming waits for the store."""


class Worker:
    def __init__(
        self,
        name: str,
        store: Store,
        handlers: Mapping[str, Handler],
        settler: Settler,
        tuning: Tuning,
        poll: float,
        hooks: Hooks,
        ticks: Ticks,
        resources: Any = None,
        world: World = REAL,
        flows: FlowCode = FlowCode(),  # noqa: B008
    ) -> None:
        self.name = name
        self._now, self._stopwatch = world.monotonic, world.stopwatch
        self._store = store
        self._handlers = handlers
        self._settler = settler
        self._tuning = tuning
        self._pause = min(poll, tuning.rescue_every)
        self._resources = resources
        self._written = flows.written
        self._hooks = hooks
        self._ticks = ticks
        self._runner = Runner(handlers, world, Steps(store, flows))
        self._tallies = Tallies()
        self._reported_at = 0.0
        self._claims = 0
        self._handover = HandOver(store)
        self._since = 0.0  # our clock less the store's, at most
        self._seats: dict[Lease, Seat] = {}
        self.overdue = 0  # calls that outlived their runs and still take a seat
        self._waiters = Waiters(name, handlers.keys(), self.leases, lambda: self.free)
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()  # the heart reads the seats from its own thread
        self._wake = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._stopping = False
        self.beat: Callable[[], None] = lambda: None  # the heart's, once there is one
        self.beat_soon: Callable[[], None] = lambda: None
        self.filled: Callable[[], None] = lambda: None  # called when the first seat is taken
        self._pending: Report | None = None  # a report whose claim has not been answered yet
        self._hungry = True  # the last claim found as much as it had room for
        self.claimed_at: float | None = None  # monotonic; the proof of life
        self.slate: Slate | None = None  # where the renewer sees what is in hand

    # -- claiming --------------------------------------------------------------------------------------------------

    @property
    def free(self) -> int:
        return self._tuning.concurrency - len(self._seats) - self.overdue

    async def run(self) -> None:
        """Claim, start, wait: for a hint, for the next due run, for a free seat, or for the poll."""
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        while not self._stopping:
            self._wake.clear()
            try:
                wait = await self._claim()
            except StoreError as error:
                wait = backoff.pause()
                log.warning("cannot claim, next try in %.1f s: %s", wait, error)
            else:
                backoff.reset()
            if not self._stopping:
                await self._sleep(wait)
        await self._farewell()

    async def _claim(self) -> float:
        """Seconds until it makes sense to claim again."""
        await self._settler.flush(BACKLOG * self._tuning.concurrency)
        free = max(0, self.free)
        claim = await self._claim_once(list(self._handlers), free)
        for run in claim.runs:
            if self._stopping:
                self._settler.settle(settlement_of(run, Released()), run)
            elif run.lease not in self._seats:
                self._start(run)
        self._hungry = claim.passed_over or len(claim.runs) >= free
        return self._pause if claim.wake is None else min(claim.wake, self._pause)

    async def _claim_once(self, tasks: list[str], free: int) -> Claim:
        """One claim. Its number only counts up with an answer: after a lost reply, the same batch is asked for."""
        n = self._claims + 1
        if self._pending is None and self._now() - self._reported_at > REPORT_EVERY:
            self._pending = self._report()
        took, asked_at = self._handover.took, self._now()
        request = ClaimRequest(self.name, n, tasks, free, self._tuning.lease, self._pending)
        claim = await self._handover.claim(request, idle=free > 0 and not self._seats)
        if self._pending is not None:
            self._pending, self._reported_at = None, self._now()
        self._claims = n
        if took is not None:
            took.deadline = max(took.deadline, asked_at + self._tuning.lease)
            if self.slate is not None:
                self.slate.extend(took.lease, took.deadline)
            self._handover.took = None
        self._since = asked_at - claim.now
        self.claimed_at = self._now()
        ours = {run.lease for run in claim.lapsed}.intersection(self.unsettled() if claim.lapsed else ())
        if ours:
            self.beat()  # we were frozen, not dead: renew before somebody takes them for lost
        self._ticks.take(claim.schedules, claim.now)
        if claim.ended and self._hooks.wanted("cancelled"):
            self._hooks.later(tell_unstarted(self._store, self._hooks, claim.ended))
        rescue([run for run in claim.lapsed if run.lease not in ours and run not in claim.runs], self._settler)
        return claim

    def _take(self, handed: Handed) -> None:
        """Start a handed run. If the token is stale, a newer claim returns the run: just claim."""
        if self._stopping or not self._handover.accepts(handed):
            self.look()
            return
        self._handover.took = self._start(handed.run)
        self._wake.set()  # there may be more, and one more free seat to tell of

    async def _farewell(self) -> None:
        """A claim for nothing: this worker is not idle but gone, and no hint should be spent on it."""
        self._reported_at = 0.0
        try:
            claim = await self._claim_once([], 0)
        except StoreError as error:
            log.debug("no farewell: %s", error)
        else:
            for run in claim.runs:  # the batch of a claim whose reply was lost
                self._settler.settle(settlement_of(run, Released()), run)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    # -- one seat --------------------------------------------------------------------------------------------------

    def _start(self, run: Run) -> Seat:
        deadline = min(self._now() + self._tuning.lease, self._since + (run.until or 0.0))
        period = None if run.origin.period is None else self._written(run.origin.period)
        seat = Seat(run, Context(run, self._resources, self._noted, period), deadline)
        self._tallies.claimed(run)
        with self._lock:
            self._seats[seat.lease] = seat
        if self.slate is not None:  # after the seat: a renewal that began later than this has seen the lease
            self.slate.take(seat.lease, deadline)
        if self._empty.is_set():
            self._empty.clear()
            self.filled()
        seat.task = self._loop.create_task(self._serve(seat), name=f"{run.task} {run.id}")
        return seat

    async def _serve(self, seat: Seat) -> None:
        started = self._stopwatch()
        serving.set((self._waiters, seat.lease))  # in the context of this task alone, as the next line
        run_here.set(seat.run)
        log.info("%s %s started (fence %d)", seat.run.task, seat.run.id, seat.run.fence)
        if self._hooks.wanted("started"):
            self._hooks.emit(in_hand("started", seat.run))
        outcome: Outcome | None = Interrupted()
        try:
            outcome = await self._runner.outcome(seat)
        except GeneratorExit:  # thrown away together with its loop: there is nobody left to tell
            outcome = None
            raise
        except Exception as error:
            log.exception("%s %s: the runner itself failed; this is a bug in rota", seat.run.task, seat.run.id)
            outcome = Failed(Failure(type(error).__name__, "the runner itself failed; see the worker's log"))
        finally:  # whatever else happens, the run is settled and the seat is free again
            if outcome is not None:
                self._ended(seat, outcome, round(self._stopwatch() - started, 6))

    def _ended(self, seat: Seat, outcome: Outcome, seconds: float) -> None:
        if seat.given_back:  # the worker has stopped: what comes now is neither recorded nor told
            with self._lock:
                del self._seats[seat.lease]
            return
        settlement = settlement_of(seat.run, outcome, seconds, seat.context.note(), seat.context.warnings)
        self._settler.settle(settlement, seat.run)
        self._leave(seat)
        tell_ending(seat.run, settlement)

    def _leave(self, seat: Seat) -> None:
        """The seat is free again, unless a thread still sits on it."""
        with self._lock:
            del self._seats[seat.lease]
        if seat.overdue is not None:
            self.overdue += 1
            log.warning("%s %s ended, but its call runs on and keeps its seat", seat.run.task, seat.run.id)
            self._hooks.emit(in_hand("stuck", seat.run, "overdue"))
            seat.overdue.add_done_callback(self._thread_came_back)
        if not self._seats:
            self._empty.set()
        if self._hungry or (self._handover.wants_claim and not self._seats):
            self._wake.set()  # for more runs, or to be ready for what comes

    def _thread_came_back(self, call: "asyncio.Future[object]") -> None:
        if not call.cancelled():
            call.exception()  # seen: nobody else will look
        self.overdue -= 1
        self._wake.set()

    def drop_lease(self, lease: Lease) -> None:
        """The store has answered the ending of this lease: nobody needs to renew it any more."""
        if self.slate is not None:
            self.slate.leave(lease)

    def recorded(self, run: Run, settlement: Settlement, now: float) -> None:
        """An ending of ours stands in the store: now it counts, and whoever listens may know."""
        self._tallies.ended(run, settlement)
        event = ended(run, settlement, now)
        if self._hooks.wanted(event.name):
            self._hooks.emit(event)
        if settlement.stops is not None and self._hooks.wanted("cancelled"):
            self._hooks.later(tell_stopped(self._store, self._hooks, settlement.stops, now))

    def _report(self) -> Report:
        return Report(
            host=socket.gethostname(),
            pid=os.getpid(),
            version=_version(),
            seats=self._tuning.concurrency,
            leased=len(self._seats),
            overdue=self.overdue,
            tallies=self._tallies.take(),
            lease=self._tuning.lease,
        )

    def _noted(self) -> None:
        """A handler left a note; it may do so from any thread."""
        self.beat_soon()

    # -- what the outside tells it ---------------------------------------------------------------------------------

    def leases(self) -> list[Lease]:
        """The leases of the runs in hand; safe from any thread."""
        with self._lock:
            return list(self._seats)

    def unsettled(self) -> list[Lease]:
        """The leases to renew: of the runs in hand, and of those whose endings the store has not answered yet. Without
        the latter, a run that succeeded would start again while its ending waits. Safe from any thread."""
        return list(dict.fromkeys([*self.leases(), *self._settler.leases(self.name)]))

    def notes(self) -> dict[Lease, tuple[Note, int]]:
        """What handlers left and no renewal has carried yet; safe from any thread."""
        with self._lock:
            seats = list(self._seats.values())
        mine = (seat for seat in seats if seat.stop is not Stop.LOST)
        return {seat.lease: note for seat in mine if (note := seat.context.fresh_note())}

    def carried(self, notes: Mapping[Lease, tuple[Note, int]]) -> None:
        """These notes have arrived."""
        for lease, (_, number) in notes.items():
            if lease in self._seats:
                self._seats[lease].context.carried(number)

    def running(self) -> dict[str, int]:
        """How many runs of each task are in hand."""
        return dict(Counter(lease_seat.run.task for lease_seat in self._seats.values()))

    def renewed(self, leases: Sequence[Lease], answers: Sequence[Renewal], deadline: float) -> None:
        for lease, answer in zip(leases, answers, strict=True):
            seat = self._seats.get(lease)
            if seat is None:
                continue
            seat.deadline = deadline
            if answer is Renewal.CANCEL:
                seat.tell(Stop.CANCEL)
            elif answer is Renewal.PAUSE:
                seat.tell(Stop.PAUSE)
            elif answer is Renewal.LOST:
                log.warning(
                    "%s %s: lease lost (fence %d), stopping its handler",
                    seat.run.task,
                    lease.run,
                    lease.fence,
                )
                seat.tell(Stop.LOST)

    def look(self) -> None:
        """Claim now, if there is a free seat."""
        if self.free > 0:
            self._wake.set()

    def hint(self, hint: Hint) -> bool:
        """Wakes the claim loop if the hint is for us; true if one of our runs has news."""
        if isinstance(hint, Handed) and hint.worker == self.name:
            self._take(hint)
        elif self.name in hint.workers or hint.resync:
            self.look()
        return any(seat.stop is None and lease.run in hint.runs for lease, seat in self._seats.items())

    # -- stopping --------------------------------------------------------------------------------------------------

    def stop_claiming(self) -> None:
        self._stopping = True
        self._wake.set()

    async def drain(self, grace: float) -> None:
        """Wait for the running handlers, then tell them to stop, then give back what is left."""
        if not await self._emptied(grace):
            still = plural(len(self._seats), "handler")
            log.warning("%s still running%s: told to stop", still, f" after {grace:.1f} s" if grace else "")
            for seat in list(self._seats.values()):
                seat.tell(Stop.SHUTDOWN)
            await self._cleaned_up()
        for seat in [seat for seat in self._seats.values() if not seat.given_back]:
            seat.given_back = True
            log.warning("%s %s does not stop: its run is given back while the call goes on", seat.run.task, seat.run.id)
            outcome = Released() if seat.called_at is None else Interrupted()
            left = settlement_of(seat.run, outcome, None, seat.context.note(), seat.context.warnings)
            self._settler.settle(left, seat.run)  # what its handler may still say comes too late
        await self._runner.close()
        await self._hooks.drain(HOOK_PATIENCE)

    async def _cleaned_up(self) -> None:
        """Handlers that were told to stop may clean up; a thread that has not listened by now never will."""
        if await self._emptied(THREAD_CLEANUP):
            return
        seats = [seat for seat in self._seats.values() if self._handlers[seat.run.task].executor != "thread"]
        slow = [seat.task for seat in seats if seat.task is not None]
        if slow:
            await asyncio.wait(slow, timeout=CLEANUP - THREAD_CLEANUP)

    async def _emptied(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True


@cache
def _version() -> str:
    try:
        return version("rota")
    except PackageNotFoundError:
        return ""
