"""The worker: claims as many runs as it has free seats, and has them called."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress

from rota.domain.backoff import Backoff
from rota.domain.lifecycle import Released, settlement_of
from rota.domain.run import Run
from rota.domain.text import plural
from rota.domain.tuning import Tuning
from rota.engine.calls import Calls
from rota.engine.handover import HandOver
from rota.engine.offers import Offers
from rota.engine.reports import Reports
from rota.engine.seats import Seat, Seats
from rota.engine.settler import Settler
from rota.engine.traces import receiving
from rota.engine.wear import Wear
from rota.engine.world import REAL, World
from rota.errors import StoreError
from rota.store import Claim, ClaimRequest, Handed, Hint, Orders, Store

log = logging.getLogger("rota")

CLAIM_WITHIN = 1.0
"""Seconds within which the store hears that a handed run was taken: its lease is short (UNHEARD)."""
FIRST_PAUSE, LAST_PAUSE = 0.1, 2.0
"""Seconds between claims while the store does not answer."""
BACKLOG = 4
"""With this many unrecorded endings per seat, claiming waits for the settler."""


class Worker:
    """The claim loop of one engine."""

    def __init__(
        self,
        store: Store,
        seats: Seats,
        calls: Calls,
        settler: Settler,
        offers: Offers,
        reports: Reports,
        tuning: Tuning,
        poll: float,
        world: World = REAL,
        wear: Wear | None = None,
        leave: Callable[[str, bool], None] = lambda words, worn: None,
    ) -> None:
        """`poll` is how many seconds may pass between two claims, if no hint comes. `leave(words, worn)` is called
        once, when the worker is worn out or a person has asked it to stop."""
        self.name = seats.worker
        self.claimed_at: float | None = None
        """When the store last answered a claim, by the monotonic clock."""
        self.turned_at = world.monotonic()
        """When the worker last began to claim, whether or not the store answered."""
        self._seats = seats
        self._calls = calls
        self._settler = settler
        self._offers = offers
        self._reports = reports
        self._tuning = tuning
        self._pause = min(poll, tuning.rescue_every)
        self._now = world.monotonic
        self._handover = HandOver(store)
        self._claims = 0
        self._ahead = 0.0  # our clock minus the store's clock, at most
        self._hungry = True  # the last claim found as many runs as it had room for
        self._wake = asyncio.Event()
        self._stopping = False
        self._leaving = False
        self._orders = Orders()
        self._wear = wear or Wear()
        self._leave = leave

    async def run(self) -> None:
        """Claim, start, wait: for a hint, for the next due run, for a free seat, or for the poll."""
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        while not self._stopping:
            self._wake.clear()
            self.turned_at = self._now()
            try:
                wait = await self._claim()
            except StoreError as error:
                wait = backoff.pause()
                log.warning("cannot claim, next try in %.1f s: %s", wait, error)
            else:
                backoff.reset()
            if not self._stopping:
                await self._sleep(wait)
        await self._claim_nothing()

    @property
    def quiet(self) -> bool:
        """The worker starts no more runs. It still fires schedules, rescues lapsed runs and reports."""
        return self._leaving or self._orders.quiet

    def stop_claiming(self) -> None:
        self._stopping = True
        self._wake.set()

    async def report_counts(self) -> None:
        """Send a last report, if calls were counted since the one that said that this worker stops."""
        if self._reports.has_counts:
            await self._claim_nothing()

    def look(self) -> None:
        """Claim now, if there is a free seat."""
        if self._seats.free > 0:
            self._wake.set()

    def hint(self, hint: Hint) -> bool:
        """Claim if `hint` is for this worker. True if a run in hand may have changed."""
        if isinstance(hint, Handed) and hint.worker == self.name:
            self._accept(hint)
        elif self.name in hint.workers:
            self._wake.set()  # also without a free seat: a person may have asked something of this worker
        elif hint.resync:
            self.look()
        return any(seat.stop is None and seat.run.id in hint.runs for seat in self._seats)

    async def _claim(self) -> float:
        """Claim and start the runs. Returns the seconds until it makes sense to claim again."""
        await self._settler.flush(BACKLOG * self._tuning.concurrency)
        if self._handover.hints_on and self._handover.took is not None and not self._seats:
            with suppress(TimeoutError):  # the store need not extend a lease whose end it knows
                async with asyncio.timeout(CLAIM_WITHIN):
                    await self._settler.flush()
        free = self._room()
        claim = await self._claim_once(self._calls.tasks, free)
        self._hungry = claim.passed_over or len(claim.runs) >= free
        if self._stopping or self.quiet:
            for run in claim.runs:
                self._release(run)
        else:
            self._start([run for run in claim.runs if run.lease not in self._seats])
            await asyncio.sleep(0)  # calls that began and ended at once gave no turn to the rest of the loop
        return self._pause if claim.wake is None else min(claim.wake, self._pause)

    def _room(self) -> int:
        """Return how many runs this worker may claim now."""
        if not self._leaving and (words := self._wear.words()) is not None:
            self._leaving = True
            self._leave(words, True)
        return 0 if self.quiet else self._wear.room(max(0, self._seats.free))

    async def _claim_once(self, tasks: list[str], free: int) -> Claim:
        """One claim. Its number only counts up with an answer: after a lost reply, the same batch is asked for."""
        n, handed, asked_at = self._claims + 1, self._handover.took, self._now()
        lease, queues = self._tuning.lease, self._tuning.queues
        request = ClaimRequest(self.name, n, tasks, free, lease, self._reports.next(), queues=queues)
        idle = free > 0 and not self._seats
        spans: AbstractContextManager[list[Run]] = receiving() if self._tuning.trace_store else nullcontext([])
        with spans as received:
            claim = await self._handover.claim(request, idle)
            received += claim.runs
        self._claims = n
        self._reports.sent(claim.now)
        if handed is not None:
            self._seats.extend(handed, asked_at + self._tuning.lease)
            self._handover.took = None
        self._ahead = asked_at - claim.now
        self.claimed_at = self._now()
        self._offers.take(claim)
        if claim.orders != self._orders:
            self._follow(claim.orders)
        return claim

    def _follow(self, orders: Orders) -> None:
        """Do what people ask of this worker. With fewer seats than runs in hand, the runs in hand go on."""
        before, self._orders = self._orders, orders
        if orders.seats != before.seats:
            self._seats.total = orders.seats or self._tuning.concurrency
            log.info("worker %s has %s now, as it was asked to", self.name, plural(self._seats.total, "seat"))
        if orders.quiet != before.quiet:
            log.info(
                "worker %s starts %s, as it was asked to", self.name, "no more runs" if orders.quiet else "runs again"
            )
        if orders.stop and not self._leaving:
            self._leaving = True
            self._leave("it was asked to stop", False)
        self._reports.hurry()
        self._wake.set()

    async def _claim_nothing(self) -> None:
        """Say with a claim for nothing that this worker is gone and not idle: the store spends no hint on it."""
        self._reports.hurry()
        try:
            claim = await self._claim_once([], 0)
        except StoreError as error:
            log.debug("worker %s cannot tell the store that it stops: %s", self.name, error)
        else:
            for run in claim.runs:  # the batch of a claim whose reply was lost
                self._release(run)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def _start(self, runs: Sequence[Run]) -> list[Seat]:
        if self._wear.start(len(runs)):
            self._wake.set()  # the next claim finds that the worker is worn out
        return self._calls.start(runs, self._now() + self._tuning.lease, self._ahead, self._left)

    def _release(self, run: Run) -> None:
        """Give back a run that was claimed and not started."""
        self._settler.settle(settlement_of(run, Released()), run)

    def _accept(self, handed: Handed) -> None:
        """Start a handed run. If its token is stale, a newer claim returns the run: just claim."""
        if self._stopping or self.quiet or not self._handover.accepts(handed):
            self.look()
            return
        self._handover.took = self._start([handed.run])[0]
        if self._handover.hints_on and self._seats.free > 0:
            asyncio.get_running_loop().call_later(CLAIM_WITHIN, self._claim_unless_claimed, self._claims)
        else:
            self._wake.set()  # there may be more runs, and the store should know that there is one seat less

    def _claim_unless_claimed(self, claims: int) -> None:
        """Claim, if nothing was claimed since claim number `claims`: the lease of a handed run is short."""
        if self._claims == claims:
            self._wake.set()

    def _left(self, seat: Seat) -> None:
        """A run is no longer in hand: claim, if that may find more runs or makes this worker ready for a handed one."""
        if seat.overdue is not None:
            seat.overdue.add_done_callback(lambda _: self._wake.set())
        if self._hungry or (self._handover.wants_claim and not self._seats):
            self._wake.set()
