"""A full named limit is no other task's trouble: claims of another task, with many runs waiting for the limit and with
none."""

import asyncio
import sys
import time

from benchmarks.figures import Cost
from benchmarks.settings import Settings
from benchmarks.turns import BATCH, LEASE, fresh_store, middle_of, take_turns
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.policy import Limit
from rota.domain.run import NewRun
from rota.domain.spec import TaskSpec, limit_row
from rota.store import Claim, ClaimRequest, Store

GPU = Limit(1, name="gpu")
TASKS = ("train", "paint", "mail")
WAITING = 100_000


class Others:
    """A worker of two tasks that share a limit, and of one that does not."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._claims = 0
        self._made = 0
        self.times: list[float] = []

    async def open(self, waiting: int) -> None:
        """One run has the limit, the others wait for it."""
        limited = [TaskSpec(task, limits=(GPU,)) for task in TASKS[:2]]
        await self._store.declare([limit_row(GPU), *limited, TaskSpec(TASKS[2])])
        if waiting:
            await self._put("train", 1)
            assert len((await self._claim(1)).runs) == 1
            for place in range(0, waiting, 1000):
                await self._put(TASKS[place // 1000 % 2], 1000)

    async def turn(self) -> None:
        """Microseconds per run to claim runs of the task without a limit."""
        await self._put("mail", BATCH)
        began = time.perf_counter()
        runs = (await self._claim(BATCH)).runs
        self.times.append((time.perf_counter() - began) / BATCH * 1e6)
        assert len(runs) == BATCH
        await self._store.settle([settlement_of(run, Succeeded()) for run in runs])

    async def _claim(self, free: int) -> Claim:
        self._claims += 1
        return await self._store.claim(ClaimRequest("worker", self._claims, TASKS, free, LEASE))

    async def _put(self, task: str, count: int) -> None:
        ids = [f"run-{self._made + place}" for place in range(count)]
        self._made += count
        await self._store.put([NewRun(id=id, task=task, body=b'{"v":1,"args":{}}') for id in ids])


def full_limit(settings: Settings, server: str | None = None, waiting: int = WAITING) -> list[Cost]:
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(settings.rounds):
        quiet, full = asyncio.run(_both(waiting, server))
        alone.append(middle_of(quiet.times))
        beside.append(middle_of(full.times))
    name = f"claim a run of another task with {waiting:,} waiting for a named limit, beside none"
    return [Cost(name, "µs", beside, alone, goal=1.5)]


async def _both(waiting: int, server: str | None) -> tuple[Others, Others]:
    async with fresh_store(server) as (_, quiet_store), fresh_store(server) as (_, full_store):
        quiet, full = Others(quiet_store), Others(full_store)
        await quiet.open(0)
        await full.open(waiting)
        await take_turns(quiet, full)
    return quiet, full


if __name__ == "__main__":
    for cost in full_limit(Settings(rounds=1), sys.argv[1] if len(sys.argv) > 1 else None):
        print(cost.name, cost.cost, cost.measure, f"{cost.ratio.middle:.2f}x")
