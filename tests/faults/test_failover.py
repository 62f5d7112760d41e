"""A Sentinel failover under load: what the new primary never heard of is gone, and nothing else; nothing ends twice."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from rota import StoreUnavailable
from rota.domain.lifecycle import Lost, Succeeded, settlement_of
from rota.domain.run import Run, State
from rota.domain.settlement import Settlement, Verdict
from rota.store import ClaimRequest, RunQuery
from storekit.contract import Stage, new_run
from storekit.contract.stage import GREET, LEASE
from storekit.servers import RedisSentinel, RedisServer, valkey_of_wheel
from tests.faults.test_redis import persist
from tests.stores.redis_stages import at, staged

log = logging.getLogger("rota")


class Load:
    """Producers and workers that take a failover for what it is, and what they were told."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.put: list[str] = []
        self.executed: list[str] = []
        self.ended: list[str] = []
        self.refused = 0
        self._over = False
        self._progress = asyncio.Condition()

    @asynccontextmanager
    async def going_on(self) -> AsyncGenerator[None]:
        async with asyncio.TaskGroup() as crowd:
            for place in range(3):
                crowd.create_task(self._produce(f"p{place}"))
            for place in range(2):
                crowd.create_task(self._work(f"w{place}"))
            yield
            self._over = True

    async def more(self, count: int) -> None:
        """Until so many more were acknowledged, and so many endings."""
        put, ended = len(self.put) + count, len(self.ended) + count
        await self._until(lambda: len(self.put) >= put and len(self.ended) >= ended)

    async def drain(self) -> None:
        """All that is left, also under workers of whom nothing was heard again."""
        for n in range(1, 1000):
            self.stage.wait(LEASE + 1)
            if not await self._step("last", n):
                return

    async def _produce(self, name: str) -> None:
        number = 0
        while not self._over:
            number += 1
            new = new_run(id=f"{name}-{number}")
            await persist(partial(self.stage.store.put, [new]))
            self.put.append(new.id)
            await self._tell()
            await self._until(lambda: self._over or len(self.put) < len(self.ended) + 200)

    async def _work(self, name: str) -> None:
        n = 0
        while not self._over:
            n += 1
            await self._step(name, n)
            await self._tell()

    async def _step(self, name: str, n: int) -> int:
        claim = await persist(partial(self.stage.store.claim, ClaimRequest(name, n, [GREET], 10, LEASE)))
        self.executed += [run.id for run in claim.runs]
        ends = [settlement_of(run, Lost()) for run in claim.lapsed] + [
            settlement_of(run, Succeeded()) for run in claim.runs
        ]
        if ends:
            verdicts = (await persist(partial(self.stage.store.settle, ends))).items
            for said, verdict in zip(ends, verdicts, strict=True):
                self._hear(said, verdict)
        return len(ends)

    def _hear(self, said: Settlement, verdict: Verdict) -> None:
        if verdict is Verdict.STALE:
            self.refused += 1
        elif not said.lost:
            self.ended.append(said.run)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with self._progress:
            await self._progress.wait_for(holds)

    async def _tell(self) -> None:
        async with self._progress:
            self._progress.notify_all()


def cut_off(primary: RedisServer) -> None:
    """From here on its replica gets nothing, and may not follow again; clients notice nothing."""
    primary.send("ACL", "SETUSER", "default", "-psync", "-sync")
    primary.send("CLIENT", "KILL", "TYPE", "replica")


async def fail_over(group: RedisSentinel, load: Load, replicating: bool) -> tuple[set[str], set[str]]:
    """The primary dies under load. What was put, and what was executed or ended, since the replica had everything."""
    primary = group.primary
    put, executed, ended = len(load.put), len(load.executed), len(load.ended)
    await asyncio.to_thread(primary.send, "WAIT", "1", "4000")
    if not replicating:
        await asyncio.to_thread(cut_off, primary)
    await load.more(100)
    await asyncio.to_thread(primary.kill)
    await asyncio.to_thread(group.wait_for_failover, primary)
    return {*load.put[put:]}, {*load.executed[executed:], *load.ended[ended:]}


async def come_back(group: RedisSentinel, server: RedisServer) -> None:
    """The one that died, as a replica of the new one."""
    await asyncio.to_thread(server.start)
    await asyncio.to_thread(server.wait_until, server.follows, "follow the new primary")


async def survivors(stage: Stage) -> dict[str, Run]:
    return {run.id: run for run in (await stage.store.runs(RunQuery(limit=1_000_000))).runs}


def check(load: Load, runs: dict[str, Run]) -> tuple[set[str], set[str]]:
    """Nothing is recorded finished twice in what survives. What was acknowledged and is gone, and what ran again."""
    for run in runs.values():
        assert run.state is State.SUCCEEDED
        assert [attempt.outcome for attempt in run.attempts].count("succeeded") == 1
    lost = {*load.put} - runs.keys()
    again = {run for run, times in Counter(load.executed).items() if times > 1}
    log.warning(
        "of %d acknowledged %d are lost, %d ran again, %d endings were refused",
        *(len(load.put), len(lost), len(again), load.refused),
    )
    return lost, again


async def test_a_failover_loses_what_was_not_replicated_and_nothing_else() -> None:
    with RedisSentinel(valkey_of_wheel()) as group:
        async with staged(at(group.url, "n")) as stage:
            load = Load(stage)
            async with load.going_on():
                await load.more(100)
                put, worked = await fail_over(group, load, replicating=False)
                await load.more(100)
            await load.drain()
            lost, again = check(load, await survivors(stage))
    assert lost
    assert lost <= put
    assert again <= worked


@pytest.mark.soak
@pytest.mark.parametrize("replicating", [True, False])
async def test_many_failovers_under_load_end_nothing_twice(replicating: bool) -> None:
    with RedisSentinel(valkey_of_wheel(), {"appendfsync": "always"}) as group:
        async with staged(at(group.url, "n")) as stage:
            load, unsure_put, unsure_work = Load(stage), set[str](), set[str]()
            async with load.going_on():
                for _ in range(20):
                    await load.more(500)
                    dying = group.primary
                    put, worked = await fail_over(group, load, replicating)
                    unsure_put |= put
                    unsure_work |= worked
                    await load.more(100)
                    await come_back(group, dying)
            await load.drain()
            lost, again = check(load, await survivors(stage))
    assert lost <= unsure_put
    assert again <= unsure_work


async def test_a_primary_that_wants_a_replica_acknowledges_nothing_alone() -> None:
    """`min-replicas-to-write`, with a replica to spare: a new primary wants one as well."""
    options = {"min-replicas-to-write": "1", "min-replicas-max-lag": "10"}
    with RedisSentinel(valkey_of_wheel(), options, replicas=2) as group:
        async with staged(at(group.url, "n")) as stage:
            kept, primary = new_run(), group.primary
            await persist(partial(stage.put, kept))
            await asyncio.to_thread(primary.send, "WAIT", "2", "4000")
            await asyncio.to_thread(cut_off, primary)
            with pytest.raises(StoreUnavailable, match="too few replicas follow it") as alone:
                await stage.put(new_run())
            assert alone.value.passing
            await asyncio.to_thread(primary.kill)
            await asyncio.to_thread(group.wait_for_failover, primary)
            after = new_run()
            await persist(partial(stage.put, after))
            assert (await survivors(stage)).keys() == {kept.id, after.id}
