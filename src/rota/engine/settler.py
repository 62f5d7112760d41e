"""The settler: every ending goes through here, in batches, until the store has answered."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from rota.domain.decision import Reason
from rota.domain.run import Failure, Run, State
from rota.domain.settlement import Finish, Settlement, Verdict
from rota.errors import StoreError
from rota.store import Store

log = logging.getLogger("rota")

BATCH = 1000
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0


Ending = tuple[Settlement, Run]


class Settler:
    """A lone settlement leaves at once; those that come while one batch is under way share the next."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.recorded: Callable[[Run, Settlement], None] = lambda run, settlement: None
        self._waiting: deque[Ending] = deque()
        self._under_way: list[Ending] = []
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()

    @property
    def backlog(self) -> int:
        return len(self._waiting) + len(self._under_way)

    def settle(self, settlement: Settlement, run: Run) -> None:
        """Takes it without waiting, so that no cancellation can come between an ending and its record."""
        self._waiting.append((settlement, run))
        self._none.clear()
        self._some.set()

    async def run(self) -> None:
        """Sends for ever. A batch whose answer was lost is sent again: the store knows a resend."""
        while True:
            if not self._under_way:
                await self._some.wait()
                self._under_way = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            await self._send(self._under_way)
            self._under_way = []
            if not self._waiting:
                self._some.clear()
                self._none.set()

    async def flush(self) -> None:
        """Returns when everything is recorded."""
        await self._none.wait()

    async def _send(self, batch: Sequence[Ending]) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                reply = await self._store.settle([settlement for settlement, _ in batch])
            except StoreError as error:
                log.warning("cannot record %d endings, next try in %.1f s: %s", len(batch), pause, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LAST_PAUSE)
            except Exception as error:
                if len(batch) == 1:
                    await self._send_without_its_words(batch[0][0], error)
                else:  # one of them cannot be written: the others must not wait for it
                    for ending in batch:
                        await self._send([ending])
                return
            else:
                for (settlement, run), verdict in zip(batch, reply.items, strict=True):
                    if verdict is Verdict.STALE:
                        _report_stale(settlement)
                    else:
                        self.recorded(run, settlement)
                return

    async def _send_without_its_words(self, settlement: Settlement, why: Exception) -> None:
        """An ending that the store cannot write is recorded as a failure that says so."""
        log.error("run %s: its ending (%s) cannot be written", settlement.run, settlement.outcome, exc_info=why)
        error = Failure("BadResult", "what the handler returned or raised cannot be written; see the worker's log")
        failed = Finish(State.FAILED, Reason.BAD_RESULT)
        plain = Settlement(settlement.run, settlement.fence, settlement.worker, failed, "bad_result", error=error)
        try:
            await self._store.settle([plain])
        except Exception:
            log.exception("run %s: not even that; it starts again when its lease has lapsed", settlement.run)


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
