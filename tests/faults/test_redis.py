"""Redis in trouble: scripts gone, replies lost, memory full, restarted under load, failed over. Work goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import pytest

from rota import Every, Limit, Rota, StoreUnavailable
from rota.app.core import core_of
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.run import State
from rota.store import ClaimRequest, RunQuery, Store
from rota.testing import drain
from storekit.contract import Stage, new_run
from storekit.contract.stage import GREET, LEASE
from storekit.proxy import FaultProxy
from storekit.servers import RedisSentinel, RedisServer, redis_of_wheel, valkey_of_wheel
from tests.stores.redis_stages import at, staged

T = TypeVar("T")


async def test_scripts_that_the_server_has_forgotten_are_sent_again(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        for _ in range(3):
            valkey.send("SCRIPT", "FLUSH")
            await stage.ended()
        valkey.send("SCRIPT", "FLUSH")
        await asyncio.gather(*(stage.put(new_run()) for _ in range(20)))
        assert len((await stage.claim(free=50)).runs) == 20


async def test_a_server_that_says_nothing_is_given_up_in_time(valkey: RedisServer, namespace: str) -> None:
    async with FaultProxy(valkey.address) as proxy, staged(at(valkey.url_at(proxy.address), namespace)) as stage:
        proxy.black_hole()
        with pytest.raises(StoreUnavailable, match="did not answer in time") as gone:
            async with asyncio.timeout(30):
                await stage.put(new_run())
        assert gone.value.passing
        proxy.heal()
        await stage.put(new_run())


async def test_a_request_whose_time_is_over_is_sent_once_more(valkey: RedisServer, namespace: str) -> None:
    """The time may have passed while this process could not listen."""
    async with FaultProxy(valkey.address) as proxy, staged(at(valkey.url_at(proxy.address), namespace)) as stage:
        proxy.fail_next("black hole", match=b"FCALL")
        new = new_run()
        await stage.put(new)
        assert proxy.struck == ["black hole"]
        assert (await stage.see(new)).id == new.id


async def test_a_cancelled_call_takes_no_other_ones_answer(valkey: RedisServer, namespace: str) -> None:
    async with FaultProxy(valkey.address) as proxy, staged(at(valkey.url_at(proxy.address), namespace)) as stage:
        run = await stage.ended()
        proxy.delay(0.2)
        reading = asyncio.create_task(stage.see(run))
        depths = asyncio.create_task(stage.store.depths())
        await asyncio.sleep(0)
        reading.cancel()
        assert (await depths).items == []
        assert (await stage.see(run)).id == run.id


async def test_a_full_server_refuses_puts_and_still_lets_work_end() -> None:
    with RedisServer(valkey_of_wheel(), {"maxmemory": "200mb", "maxmemory-policy": "noeviction"}) as server:
        async with staged(at(server.url, "n")) as stage:
            run = await stage.running()
            server.send("CONFIG", "SET", "maxmemory", "1000")
            with pytest.raises(StoreUnavailable, match="no memory left") as full:
                await stage.put(new_run())
            assert full.value.passing
            assert await stage.end(run, Succeeded()) == "applied"
            server.send("CONFIG", "SET", "maxmemory", "200mb")
            await stage.put(new_run())


async def test_an_old_server_that_is_full_changes_nothing_by_halves() -> None:
    with RedisServer(redis_of_wheel(), {"maxmemory": "200mb"}) as server:
        async with staged(at(server.url, "n")) as stage:
            run = await stage.running()
            server.send("CONFIG", "SET", "maxmemory", "1000")
            for refused in (stage.put(new_run()), stage.end(run, Succeeded())):
                with pytest.raises(StoreUnavailable, match="no memory left"):
                    await refused
            assert await stage.see(run) == run
            server.send("CONFIG", "SET", "maxmemory", "200mb")
            assert await stage.end(run, Succeeded()) == "applied"


async def test_a_replica_takes_no_writes_and_says_so(valkey: RedisServer) -> None:
    with RedisServer(valkey_of_wheel(), tcp=True) as primary, RedisServer(valkey_of_wheel(), tcp=True) as server:
        async with staged(at(server.url, "n")) as stage:
            await stage.put(new_run())
            server.send("REPLICAOF", "127.0.0.1", str(primary.port))
            with pytest.raises(StoreUnavailable, match="replica") as refused:
                await stage.put(new_run())
            assert refused.value.passing
            server.send("REPLICAOF", "NO", "ONE")
            await stage.put(new_run())


async def test_a_cut_connection_costs_a_resync_and_hints_go_on(valkey: RedisServer, namespace: str) -> None:
    async with (
        FaultProxy(valkey.address) as proxy,
        staged(at(valkey.url_at(proxy.address), namespace)) as stage,
        stage.store.changes() as hints,
    ):
        proxy.cut()
        assert (await anext(hints)).resync
        await stage.claim("ada")
        await stage.put(new_run())
        assert (await anext(hints)).workers == {"ada"}


class Crowd:
    """Producers and workers that take every passing trouble for what it is."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.put: list[str] = []
        self.applied: list[str] = []
        self.over = asyncio.Event()
        self.progress = asyncio.Condition()

    async def produce(self, name: str, count: int) -> None:
        for number in range(count):
            new = new_run(id=f"{name}-{number}")
            await persist(partial(self.stage.store.put, [new]))
            self.put.append(new.id)
            await self._tell()

    async def work(self, name: str) -> None:
        n = 0
        while not self.over.is_set():
            n += 1
            claim = await persist(partial(self.stage.store.claim, ClaimRequest(name, n, [GREET], 10, LEASE)))
            if claim.runs:
                ends = [settlement_of(run, Succeeded()) for run in claim.runs]
                verdicts = await persist(partial(self.stage.store.settle, ends))
                assert {*verdicts.items} <= {"applied", "already"}
                self.applied += [run.id for run in claim.runs]
                await self._tell()

    async def until_put(self, count: int) -> None:
        await self.until(lambda: len(self.put) >= count)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with self.progress:
            await self.progress.wait_for(holds)

    async def _tell(self) -> None:
        async with self.progress:
            self.progress.notify_all()


async def persist(call: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await call()
        except StoreUnavailable as error:  # which comes after a second of tries
            if not error.passing:
                raise


async def test_a_server_killed_under_load_loses_nothing_that_was_acknowledged() -> None:
    with RedisServer(valkey_of_wheel(), {"appendfsync": "always"}) as server:
        async with staged(at(server.url, "n")) as stage:
            crowd = Crowd(stage)
            workers = [asyncio.create_task(crowd.work(f"w{i}")) for i in range(2)]
            producers = [asyncio.create_task(crowd.produce(f"p{i}", 200)) for i in range(4)]
            for _ in range(2):
                await crowd.until_put(len(crowd.put) + 100)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            await asyncio.gather(*producers)
            await crowd.until(lambda: len(crowd.applied) >= 800)
            crowd.over.set()
            await asyncio.gather(*workers)
            runs = await everything(stage.store)
            assert sorted(run for run in runs) == sorted(crowd.put)
            assert {state for state, _ in runs.values()} == {State.SUCCEEDED}
            assert sorted(crowd.applied) == sorted(crowd.put)
            assert {attempts for _, attempts in runs.values()} == {1}


async def everything(store: Store) -> dict[str, tuple[State, int]]:
    page = await store.runs(RunQuery(limit=10_000))
    return {run.id: (run.state, len(run.attempts)) for run in page.runs}


async def test_work_follows_a_failover(redis_sentinel: RedisSentinel, namespace: str) -> None:
    async with staged(at(redis_sentinel.url, namespace)) as stage:
        run = await stage.running()
        await asyncio.to_thread(redis_sentinel.failover)
        crowd = Crowd(stage)
        await crowd.produce("p", 1)
        verdicts = await persist(partial(stage.store.settle, [settlement_of(run, Succeeded())]))
        assert verdicts.items == ["applied"]
        assert (await everything(stage.store))["p-0"] == (State.QUEUED, 0)


async def test_a_new_worker_works_off_the_backlog_of_a_full_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.client.retries.PAUSES", ())
    with RedisServer(valkey_of_wheel(), {"maxmemory": "200mb", "maxmemory-policy": "noeviction"}) as server:
        ran: list[int] = []

        def release() -> Rota:
            """The same code, in another process."""
            app = Rota(at(server.url, "n"), name="shop", concurrency=20)

            @app.task(schedule=Every(3600), limit=Limit(50))
            async def work(n: int = 0) -> None:
                ran.append(n)

            return app

        first = release()
        await core_of(first).declare_schedules()
        store = await first.client().store()
        await store.declare(core_of(first).registry.specs())
        await first.submit_many([first.tasks["work"].bind(n) for n in range(140)])
        await store.claim(ClaimRequest("dead", 1, ["work"], 10, 0.001))  # and it dies
        await first.client().close()

        server.send("CONFIG", "SET", "maxmemory", "1000")
        second = release()
        with pytest.raises(StoreUnavailable, match="no memory left"):
            await second.tasks["work"].submit(1)
        await drain(second, timeout=30)
        assert sorted(ran) == list(range(140))
        with pytest.raises(StoreUnavailable, match="no memory left"):
            await second.schedules.put("more", Every(60), second.tasks["work"].bind(1))
        await second.client().close()


async def test_a_worker_starts_although_a_full_server_refuses_its_schedules(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.client.retries.PAUSES", ())
    monkeypatch.setattr("rota.engine.supervisor.DECLARE_AGAIN", 0.01)
    with RedisServer(valkey_of_wheel(), {"maxmemory": "200mb", "maxmemory-policy": "noeviction"}) as server:
        app = Rota(at(server.url, "n"), name="shop")
        ran = asyncio.Event()

        @app.task
        async def work() -> None:
            ran.set()

        @app.task(schedule=Every(60))
        async def beat() -> None: ...

        await core_of(app).declare_schedules()
        await work.submit()
        app.backend.skew += 3600
        late = Rota(app.backend, name="shop")
        late.task(name="work")(work.fn)
        late.task(name="beat", schedule=Every(120))(beat.fn)
        server.send("CONFIG", "SET", "maxmemory", "1000")
        async with asyncio.timeout(20), late:
            assert "refuses the schedules of this app for now" in caplog.text
            await ran.wait()
            server.send("CONFIG", "SET", "maxmemory", "200mb")
            while (await late.schedules.get("beat")).trigger != "every 2m":
                await late.client().news(0.05)
        await app.client().close()
