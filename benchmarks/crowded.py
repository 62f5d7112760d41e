"""A crowded key is no one else's trouble: claims of other keys, with many runs waiting on one key and with none."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

from benchmarks.figures import Cost
from benchmarks.settings import Settings
from rota import Limit, Rota
from rota.domain.lifecycle import Succeeded, decide
from rota.domain.run import Run
from rota.store import Store

BATCH = 100
TURNS = 30
WARM_UP = 30
LEASE = 3600.0


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
        await self._store.declare([self._visit.spec()])
        if crowd:
            await self._put(["crowded"])
            await self._claim(1)
            for _ in range(0, crowd, 1000):
                await self._put(["crowded"] * 1000)

    async def turn(self) -> None:
        """Microseconds per run to claim runs of keys of their own."""
        hosts = [f"host{self._hosts + n}" for n in range(BATCH)]
        self._hosts += BATCH
        await self._put(hosts)
        began = time.perf_counter()
        runs = await self._claim(BATCH)
        self.times.append((time.perf_counter() - began) / BATCH * 1e6)
        assert len(runs) == BATCH
        await self._store.settle([decide(run, Succeeded()) for run in runs])

    async def _claim(self, free: int) -> list[Run]:
        self._claims += 1
        return (await self._store.claim("crowded", self._claims, [self._visit.name], free, LEASE)).runs

    async def _put(self, hosts: list[str]) -> None:
        await self._store.put([self._visit.bind(host).to_run() for host in hosts])


def crowded(settings: Settings) -> list[Cost]:
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(settings.rounds):
        quiet, crowd = asyncio.run(_both(settings.crowd))
        alone.append(median(quiet.times[WARM_UP:]))
        beside.append(median(crowd.times[WARM_UP:]))
    name = f"claim a run of another key with {settings.crowd:,} waiting on one key, beside none"
    return [Cost(name, "µs", beside, alone, goal=1.5)]


async def _both(crowd: int) -> tuple[Keys, Keys]:
    async with _keys(0) as quiet, _keys(crowd) as crowd_keys:
        for n in range(WARM_UP + TURNS):
            for keys in (quiet, crowd_keys) if n % 2 else (crowd_keys, quiet):
                await keys.turn()
    return quiet, crowd_keys


@asynccontextmanager
async def _keys(crowd: int) -> AsyncIterator[Keys]:
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        app = Rota(f"sqlite:///{Path(folder) / 'rota.db'}")
        async with app.backend.open() as store:
            keys = Keys(app, store)
            await keys.open(crowd)
            yield keys
