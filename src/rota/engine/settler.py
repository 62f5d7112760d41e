"""The settler: every ending goes through here, in batches, until the store has answered."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct

from rota.domain.backoff import Backoff
from rota.domain.decision import Reason
from rota.domain.run import Failure, Lease, Run, State
from rota.domain.settlement import Finish, Settlement, Verdict
from rota.domain.text import plural
from rota.engine.seats import Seats
from rota.engine.traces import settling
from rota.errors import StoreUnavailable, Unstorable
from rota.store import Reply, Store

log = logging.getLogger("rota")

BATCH = 1000
FIRST_PAUSE, LAST_PAUSE = 0.1, 2.0
"""Seconds between tries: short, because a store that is back finds runs whose leases are about to lapse."""


_STALE = Verdict.STALE
UNWRITABLE = Failure("BadResult", "what the handler returned or raised cannot be written; see the worker's log")

Ending = tuple[Settlement, Run, Lease]


class _Aside(Struct, eq=False):
    """An ending that met an error alone: it holds up no other ending, and is tried again when it is due."""

    ending: Ending
    backoff: Backoff
    due: float  # by the loop's clock


class Settler:
    """A lone settlement leaves at once; those that come while one batch is under way share the next.

    Only a value that the store has proven to be unstorable changes what is recorded. Any other error, known or not,
    says nothing about the ending: the ending is sent again until the store has answered. The worker renews the lease
    of an ending until then. If the lease is lost all the same, the answer is `stale`.
    """

    def __init__(
        self,
        store: Store,
        seats: Seats,
        on_recorded: Callable[[Sequence[Ending], float], None],
        on_stale: Callable[[], None],
        traced: bool = False,
    ) -> None:
        """The settler calls `on_recorded(endings, now)` when the store has recorded endings at `now`, and `on_stale()`
        when the store has refused one. `traced`: each settle has a span."""
        self._store = store
        self._seats = seats
        self._on_recorded = on_recorded
        self._on_stale = on_stale
        self._traced = traced
        self._waiting: deque[Ending] = deque()
        self._under_way: list[Ending] = []
        self._aside: list[_Aside] = []
        self._some = asyncio.Event()
        self._fewer = asyncio.Event()

    @property
    def backlog(self) -> int:
        return len(self._waiting) + len(self._under_way) + len(self._aside)

    def settle(self, settlement: Settlement, run: Run, lease: Lease | None = None) -> None:
        """Take an ending without waiting, so that no cancellation can come between the ending and its record. `lease`
        is the one that ends, if the caller has it."""
        if lease is None:
            lease = Lease(settlement.run, settlement.fence, settlement.worker)
        if not settlement.lost:
            self._seats.record(lease)
        self._waiting.append((settlement, run, lease))
        self._some.set()

    async def run(self) -> None:
        """Send endings for ever. A batch whose answer was lost is sent again: the store recognises a resend.

        Between two batches, one ending that was set aside is tried if it is due: neither kind starves the other.
        """
        while True:
            if not self._under_way:
                await self._until_due()
                self._under_way = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            if self._under_way:
                await self._send()
            await self._try_aside()

    async def flush(self, most: int = 0) -> None:
        """Wait until at most `most` endings are not recorded."""
        while self.backlog > most:
            self._fewer.clear()
            await self._fewer.wait()

    async def _until_due(self) -> None:
        """Wait until there is something to send: a new ending, or one that was set aside and is due again."""
        if self._waiting:
            return
        self._some.clear()
        due = min((aside.due for aside in self._aside), default=None)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                await self._some.wait()

    async def _send(self) -> None:
        """Send the batch under way. If the store refuses the batch, one ending may be the cause: send each alone."""
        batch = list(self._under_way)
        try:
            reply = await self._settle(batch)
        except Exception as error:
            if not isinstance(error, Unstorable):
                log.warning("cannot record %s, trying each alone: %r", plural(len(batch), "ending"), error)
        else:
            self._under_way = []
            self._answered(batch, reply)
            return
        for ending in batch:
            done = await self._send_alone(ending)
            self._under_way.remove(ending)
            if not done:
                backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
                self._aside.append(_Aside(ending, backoff, _clock() + backoff.pause()))
            self._fewer.set()

    async def _try_aside(self) -> None:
        """Send the ending that has been due for longest. It stays set aside until the store has answered, also if this
        call is cancelled."""
        aside = min(self._aside, key=lambda aside: aside.due, default=None)
        if aside is None or aside.due > _clock():
            return
        if await self._send_alone(aside.ending):
            self._aside.remove(aside)
            self._fewer.set()
        else:
            aside.due = _clock() + aside.backoff.pause()

    async def _send_alone(self, ending: Ending) -> bool:
        """Send one ending. False if it has to be tried again: any error but a value that cannot be stored."""
        settlement, run, lease = ending
        try:
            reply = await self._settle([ending])
        except Unstorable as error:
            self._replace_words(settlement, run, lease, error)
        except Exception as error:
            log.warning("run %s: cannot record its ending (%s): %r", run.id, settlement.outcome, error, exc_info=error)
            return False
        else:
            self._answered([ending], reply)
        return True

    async def _settle(self, endings: Sequence[Ending]) -> Reply[Verdict]:
        """Return the store's answer. An unavailable store says nothing about these endings: try until it answers."""
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        while True:
            try:
                return await self._settle_once(endings)
            except StoreUnavailable as error:
                pause = backoff.pause()
                log.warning("cannot record %s, next try in %.1f s: %s", plural(len(endings), "ending"), pause, error)
                await asyncio.sleep(pause)

    async def _settle_once(self, endings: Sequence[Ending]) -> Reply[Verdict]:
        settlements = [settlement for settlement, _, _ in endings]
        if not self._traced:
            return await self._store.settle(settlements)
        with settling(((run.task, settlement) for settlement, run, _ in endings)):
            return await self._store.settle(settlements)

    def _answered(self, batch: Sequence[Ending], reply: Reply[Verdict]) -> None:
        self._fewer.set()
        self._seats.recorded([lease for _, _, lease in batch])
        if _STALE in reply.items:
            batch = [ending for ending, verdict in zip(batch, reply.items, strict=True) if self._took(ending, verdict)]
        self._on_recorded(batch, reply.now)

    def _took(self, ending: Ending, verdict: Verdict) -> bool:
        """Return whether the store took the ending; report one that it refused."""
        if verdict is _STALE:
            _report_stale(ending[0])
            if not ending[0].lost:
                self._on_stale()
        return verdict is not _STALE

    def _replace_words(self, settlement: Settlement, run: Run, lease: Lease, why: Unstorable) -> None:
        """An ending that the store can never write is recorded as a failure that says so."""
        log.error("run %s: its ending (%s) cannot be written", run.id, settlement.outcome, exc_info=why)
        if settlement.error == UNWRITABLE:
            log.error("run %s: could not record the failure either; it starts again when its lease lapses", run.id)
            self._seats.recorded([lease])
            return
        failed = Finish(State.FAILED, Reason.BAD_RESULT)
        plain = Settlement(settlement.run, settlement.fence, settlement.worker, failed, "bad_result", error=UNWRITABLE)
        self.settle(plain, run, lease)


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _report_stale(settlement: Settlement) -> None:
    if settlement.lost:
        log.info("run %s was not lost after all: its worker is back", settlement.run)
    else:
        log.warning(
            "run %s is no longer ours (fence %d): its lease lapsed and it was taken over; our ending (%s) is refused",
            settlement.run,
            settlement.fence,
            settlement.outcome,
        )
