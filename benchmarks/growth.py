"""A long queue costs no more than a short one: put and claim with few runs queued, and with many."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from benchmarks.figures import Cost
from benchmarks.settings import Settings
from rota import Rota
from rota.store import Store

BATCH = 100
TURNS = 30
WARM_UP = 40
"""Turns before those that count. They grow the write-ahead log to its full size, in both queues: an fsync of a file
that grows costs more, which would be held against the shorter queue."""
LEASE = 3600.0


class Queue:
    """A store that stays as deep as it was made: every turn puts a batch and claims a batch."""

    def __init__(self, app: Rota, store: Store) -> None:
        async def noop(i: int) -> None: ...

        self._noop = app.task(noop)
        self._store = store
        self._claims = 0
        self.put_times: list[float] = []
        self.claim_times: list[float] = []

    async def fill(self, runs: int) -> None:
        for _ in range(0, runs, 1000):
            await self._put(1000)

    async def turn(self) -> None:
        """Microseconds per run of each."""
        began = time.perf_counter()
        await self._put(BATCH)
        put = time.perf_counter()
        self._claims += 1
        claim = await self._store.claim("growth", self._claims, [self._noop.name], BATCH, LEASE)
        claimed = time.perf_counter()
        assert len(claim.runs) == BATCH
        self.put_times.append((put - began) / BATCH * 1e6)
        self.claim_times.append((claimed - put) / BATCH * 1e6)

    def forget(self) -> None:
        """What was measured so far was warming up."""
        self.put_times.clear()
        self.claim_times.clear()

    async def _put(self, count: int) -> None:
        await self._store.put([self._noop.bind(i).to_run() for i in range(count)])


def growth(settings: Settings) -> list[Cost]:
    put: tuple[list[float], list[float]] = ([], [])
    claim: tuple[list[float], list[float]] = ([], [])
    for _ in range(settings.rounds):
        for n, queue in enumerate(asyncio.run(_both(settings))):
            put[n].append(median(queue.put_times))
            claim[n].append(median(queue.claim_times))
    depths = f"with {settings.deep:,} queued, beside {settings.shallow:,}"
    return [
        Cost(f"put a run {depths}", "µs", put[1], put[0], goal=1.5),
        Cost(f"claim a run {depths}", "µs", claim[1], claim[0], goal=1.5),
    ]


async def _both(settings: Settings) -> tuple[Queue, Queue]:
    """The shallow and the deep queue, in turns."""
    async with _queue(settings.shallow) as shallow, _queue(settings.deep) as deep:
        for n in range(WARM_UP + TURNS):
            if n == WARM_UP:
                shallow.forget()
                deep.forget()
            for queue in (shallow, deep) if n % 2 else (deep, shallow):
                await queue.turn()
    return shallow, deep


@asynccontextmanager
async def _queue(runs: int) -> AsyncIterator[Queue]:
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        app = Rota(f"sqlite:///{Path(folder) / 'rota.db'}")
        async with app.backend.open() as store:
            queue = Queue(app, store)
            await queue.fill(runs)
            yield queue
