"""The settler: every ending goes through here, in batches, until the store has answered."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from rota.domain.decision import Reason
from rota.domain.plain import plural
from rota.domain.run import Failure, Run, State
from rota.domain.settlement import Finish, Settlement, Verdict
from rota.errors import StoreError, Unstorable
from rota.store import Reply, Store

log = logging.getLogger("rota")

BATCH = 1000
FIRST_PAUSE, LAST_PAUSE = 0.1, 2.0
"""Seconds between tries: short, because a store that is back finds runs whose leases are about to lapse."""


UNWRITABLE = Failure("BadResult", "what the handler returned or raised cannot be written; see the worker's log")

Ending = tuple[Settlement, Run]


class Settler:
    """A lone settlement leaves at once; those that come while one batch is under way share the next.

    Only a value that the store has proven to be unstorable changes what is recorded. Any other error, known or not,
    says nothing about the ending: the ending is sent again until the store has answered. If its lease is lost by
    then, the answer is `stale`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.recorded: Callable[[Run, Settlement, float], None] = lambda run, settlement, now: None
        self._waiting: deque[Ending] = deque()
        self._under_way: list[Ending] = []
        self._aside: deque[Ending] = deque()  # each met an error that rota does not know, alone; they hold up nobody
        self._pause = FIRST_PAUSE  # before those are tried again
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()

    @property
    def backlog(self) -> int:
        return len(self._waiting) + len(self._under_way) + len(self._aside)

    def settle(self, settlement: Settlement, run: Run) -> None:
        """Takes it without waiting, so that no cancellation can come between an ending and its record."""
        self._waiting.append((settlement, run))
        self._none.clear()
        self._some.set()

    async def run(self) -> None:
        """Sends for ever. A batch whose answer was lost is sent again: the store knows a resend."""
        while True:
            if not self._under_way:
                await self._next()
                self._under_way = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            if self._under_way:
                await self._send(self._under_way)
            self._under_way = []
            if not self._waiting:
                self._some.clear()
                if not self._aside:
                    self._none.set()

    async def flush(self) -> None:
        """Returns when everything is recorded."""
        await self._none.wait()

    async def _next(self) -> None:
        """Until there is something to send; what was set aside is tried again after a pause."""
        if not self._aside:
            await self._some.wait()
            return
        try:
            async with asyncio.timeout(self._pause):
                await self._some.wait()
        except TimeoutError:
            self._pause = min(self._pause * 2, LAST_PAUSE)
            for _ in range(len(self._aside)):
                await self._send_alone(self._aside.popleft())
            if not self._aside:
                self._pause = FIRST_PAUSE

    async def _send(self, batch: Sequence[Ending]) -> None:
        """Until the store has answered; where one ending of the batch may be at fault, each is sent alone."""
        pause = FIRST_PAUSE
        while True:
            try:
                reply = await self._store.settle([settlement for settlement, _ in batch])
            except Unstorable:
                break
            except StoreError as error:
                log.warning("cannot record %s, next try in %.1f s: %s", plural(len(batch), "ending"), pause, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LAST_PAUSE)
            except Exception as error:
                log.warning("cannot record %s, trying each alone: %r", plural(len(batch), "ending"), error)
                break
            else:
                self._answered(batch, reply)
                return
        for ending in batch:
            await self._send_alone(ending)

    async def _send_alone(self, ending: Ending) -> None:
        """One try; an ending that meets anything but a proven bad value is set aside, and tried again."""
        settlement, run = ending
        try:
            reply = await self._store.settle([settlement])
        except Unstorable as error:
            self._replace_words(settlement, run, error)
        except Exception as error:
            self._aside.append(ending)
            log.warning("run %s: cannot record its ending (%s): %r", run.id, settlement.outcome, error, exc_info=error)
        else:
            self._answered([ending], reply)

    def _answered(self, batch: Sequence[Ending], reply: Reply[Verdict]) -> None:
        for (settlement, run), verdict in zip(batch, reply.items, strict=True):
            if verdict is Verdict.STALE:
                _report_stale(settlement)
            else:
                self.recorded(run, settlement, reply.now)

    def _replace_words(self, settlement: Settlement, run: Run, why: Unstorable) -> None:
        """An ending that the store can never write is recorded as a failure that says so."""
        log.error("run %s: its ending (%s) cannot be written", run.id, settlement.outcome, exc_info=why)
        if settlement.error == UNWRITABLE:
            log.error("run %s: could not record the failure either; it starts again when its lease lapses", run.id)
            return
        failed = Finish(State.FAILED, Reason.BAD_RESULT)
        plain = Settlement(settlement.run, settlement.fence, settlement.worker, failed, "bad_result", error=UNWRITABLE)
        self.settle(plain, run)


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
