"""A crowded key is no one else's trouble: claims of other keys, with many runs waiting on one key and with none."""

import asyncio
import time

from benchmarks.figures import Cost
from benchmarks.settings import Settings
from benchmarks.turns import BATCH, LEASE, fresh_store, middle_of, take_turns
from rota import Limit, Rota
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.store import Claim, ClaimRequest, Store
from rota.task import call_of, definition_of


class Keys:
    """A task that runs once per key at a time."""

    def __init__(self, app: Rota, store: Store) -> None:
        async def visit(host: str) -> None: ...

        self._visit = app.task(key="{host}", limit=Limit(per_key=1))(visit)
        self._store = store
        self._claims = 0
        self._hosts = 0
        self.times: list[float] = []

    async def open(self, crowd: int) -> None:
        """One of the crowd runs, the others wait for it."""
        await self._store.declare([definition_of(self._visit).spec])
        if crowd:
            await self._put(["crowded"])
            await self._claim(1)
            for _ in range(0, crowd, 1000):
                await self._put(["crowded"] * 1000)
            while (await self._claim(1)).wake == 0:  # some stores set them aside when they first meet them, by and by
                pass

    async def turn(self) -> None:
        """Microseconds per run to claim runs of keys of their own."""
        hosts = [f"host{self._hosts + n}" for n in range(BATCH)]
        self._hosts += BATCH
        await self._put(hosts)
        began = time.perf_counter()
        runs = (await self._claim(BATCH)).runs
        self.times.append((time.perf_counter() - began) / BATCH * 1e6)
        assert len(runs) == BATCH
        await self._store.settle([settlement_of(run, Succeeded()) for run in runs])

    async def _claim(self, free: int) -> Claim:
        self._claims += 1
        return await self._store.claim(ClaimRequest("crowded", self._claims, [self._visit.name], free, LEASE))

    async def _put(self, hosts: list[str]) -> None:
        await self._store.put([call_of(self._visit.bind(host)).to_run() for host in hosts])


def crowded(settings: Settings, server: str | None = None) -> list[Cost]:
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(settings.rounds):
        quiet, crowd = asyncio.run(_both(settings.crowd, server))
        alone.append(middle_of(quiet.times))
        beside.append(middle_of(crowd.times))
    name = f"claim a run of another key with {settings.crowd:,} waiting on one key, beside none"
    return [Cost(name, "µs", beside, alone, goal=1.5)]


async def _both(crowd: int, server: str | None) -> tuple[Keys, Keys]:
    async with fresh_store(server) as (one, quiet_store), fresh_store(server) as (other, crowded_store):
        quiet, crowded = Keys(one, quiet_store), Keys(other, crowded_store)
        await quiet.open(0)
        await crowded.open(crowd)
        await take_turns(quiet, crowded)
    return quiet, crowded
