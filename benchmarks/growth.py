"""A long queue costs no more than a short one: put and claim with few runs queued, and with many."""

import asyncio
import time

from benchmarks.figures import Cost
from benchmarks.settings import Settings
from benchmarks.turns import BATCH, LEASE, fresh_store, middle_of, take_turns
from rota import Rota
from rota.store import ClaimRequest, Store
from rota.task import call_of


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
        claim = await self._store.claim(ClaimRequest("growth", self._claims, [self._noop.name], BATCH, LEASE))
        claimed = time.perf_counter()
        assert len(claim.runs) == BATCH
        self.put_times.append((put - began) / BATCH * 1e6)
        self.claim_times.append((claimed - put) / BATCH * 1e6)

    async def _put(self, count: int) -> None:
        await self._store.put([call_of(self._noop.bind(i)).to_run() for i in range(count)])


def growth(settings: Settings, server: str | None = None) -> list[Cost]:
    put: tuple[list[float], list[float]] = ([], [])
    claim: tuple[list[float], list[float]] = ([], [])
    for _ in range(settings.rounds):
        for n, queue in enumerate(asyncio.run(_both(settings, server))):
            put[n].append(middle_of(queue.put_times))
            claim[n].append(middle_of(queue.claim_times))
    depths = f"with {settings.deep:,} queued, beside {settings.shallow:,}"
    return [
        Cost(f"put a run {depths}", "µs", put[1], put[0], goal=1.5),
        Cost(f"claim a run {depths}", "µs", claim[1], claim[0], goal=1.5),
    ]


async def _both(settings: Settings, server: str | None) -> tuple[Queue, Queue]:
    """The shallow and the deep queue."""
    async with fresh_store(server) as (few, shallow_store), fresh_store(server) as (many, deep_store):
        shallow, deep = Queue(few, shallow_store), Queue(many, deep_store)
        await shallow.fill(settings.shallow)
        await deep.fill(settings.deep)
        await take_turns(shallow, deep)
    return shallow, deep
