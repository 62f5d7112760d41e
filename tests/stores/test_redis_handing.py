"""A lone run that finds a ready worker on Redis is leased to it by the put itself: no claim comes between."""

import asyncio
from collections import Counter

import msgspec
import pytest
from redis.asyncio import Redis

from rota import Rota, State
from rota.domain.policy import Limit
from rota.domain.run import NewRun
from rota.store import Handed, Store
from rota.stores.redis import RedisBackend
from storekit.contract import Stage, new_run
from storekit.faults import FaultyBackend
from storekit.servers import RedisServer
from tests.stores.redis_stages import at, staged

_row = msgspec.msgpack.Decoder(tuple[int, str, float, bool, str | bool | None, str | bool, float])


async def heard(stage: Stage, *news: NewRun) -> tuple[frozenset[str], Handed | None]:
    """Which workers were hinted after these were put, and the run that was handed over."""
    async with asyncio.timeout(10), stage.listening() as ear:
        await stage.claim("ada", tasks=["greet", "other"], ready=True)
        await stage.put(*news)
        return (await ear.all()).workers, ear.carried


async def test_a_lone_due_run_is_handed_over(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        new = new_run()
        _, handed = await heard(stage, new)
        assert handed is not None
        assert handed.run == await stage.see(new)
        assert handed.run.state is State.RUNNING


@pytest.mark.parametrize("case", ["two at once", "not yet due", "limited", "unknown to it"])
async def test_what_must_be_weighed_is_left_to_a_claim(valkey: RedisServer, namespace: str, case: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        await stage.declare(limit=Limit(5), task="other")
        news = {
            "two at once": [new_run(), new_run()],
            "not yet due": [new_run(delay=60)],
            "limited": [new_run("other")],
            "unknown to it": [new_run("third")],
        }[case]
        workers, handed = await heard(stage, *news)
        assert handed is None
        assert workers == (set() if case == "unknown to it" else {"ada"})


async def test_a_worker_whose_ear_is_gone_is_handed_nothing(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage, staged(at(valkey.url, namespace)) as other:
        async with stage.store.changes():
            await stage.claim("ada", ready=True)
        await _deaf(valkey, f"{{{namespace}}}hints:ada", stage.store)
        new = new_run()
        await other.put(new)
        assert [run.id for run in (await other.claim("bob")).runs] == [new.id], "it waits for no lease"


async def test_who_listens_to_everything_is_no_worker(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage, staged(at(valkey.url, namespace)) as other:
        async with stage.store.changes():
            await stage.claim("ada", ready=True)
        await _deaf(valkey, f"{{{namespace}}}hints:ada", stage.store)
        async with Redis.from_url(valkey.url) as client, client.pubsub() as onlooker:
            await onlooker.psubscribe("*")
            assert await onlooker.get_message(timeout=10) is not None
            new = new_run()
            await other.put(new)
            assert [run.id for run in (await other.claim("bob")).runs] == [new.id]


async def test_a_message_that_no_claim_asked_for_starts_nothing(valkey: RedisServer, namespace: str) -> None:
    done = list[int]()
    app = idle_app(at(valkey.url, namespace), done)
    async with app, Redis.from_url(valkey.url) as client, client.pubsub() as onlooker:
        await onlooker.psubscribe(f"{{{namespace}}}hints:*")
        await onlooker.get_message(timeout=10)
        await is_ready(valkey, namespace)
        await (await app.tasks["note"].submit(41)).result(timeout=10)
        message = await onlooker.get_message(timeout=10)
        assert message is not None
        await is_ready(valkey, namespace)
        for forged in (message["data"].replace(b"41", b"99"), message["data"], b"junk", b"*1\r\n$1\r\nx\r\n"):
            await client.publish(message["channel"], forged)
        await (await app.tasks["note"].submit(42)).result(timeout=10)
    assert done == [41, 42]


async def _deaf(server: RedisServer, channel: str, store: Store) -> None:
    """Ends the connection that hears; returns when the server knows."""
    await store._subscriber.close()  # type: ignore[attr-defined]
    async with asyncio.timeout(10), Redis.from_url(server.url) as client:
        while (await client.pubsub_numsub(channel))[0][1]:
            pass


def idle_app(backend: FaultyBackend | RedisBackend, done: list[int]) -> Rota:
    app = Rota(backend)

    @app.task(name="note")
    async def note(number: int) -> None:
        done.append(number)

    return app


async def is_ready(server: RedisServer, namespace: str) -> None:
    """Returns when the one worker there is has said that it is ready."""
    async with asyncio.timeout(10), Redis.from_url(server.url) as client:
        rows: list[bytes] = []
        while not any(_row.decode(row)[4] for row in rows):
            rows = await client.hvals(f"{{{namespace}}}workers")  # type: ignore[assignment]


async def test_a_handed_run_starts_though_no_claim_gets_through(valkey: RedisServer, namespace: str) -> None:
    backend, done = FaultyBackend(at(valkey.url, namespace)), list[int]()
    app, outside = idle_app(backend, done), idle_app(at(valkey.url, namespace), [])
    async with outside.client(), app:
        await is_ready(valkey, namespace)
        backend.fail("claim", "request lost", times=1_000_000)
        handle = await outside.tasks["note"].submit(7)
        await handle.result(timeout=10)
        assert done == [7]
        backend.heal()


async def test_a_worker_is_ready_again_after_each_run(valkey: RedisServer, namespace: str) -> None:
    done = list[int]()
    app = idle_app(at(valkey.url, namespace), done)
    async with app:
        for number in range(20):
            await is_ready(valkey, namespace)
            await (await app.tasks["note"].submit(number)).result(timeout=10)
    assert done == list(range(20))


async def test_lost_replies_and_handed_runs_together_run_each_once(valkey: RedisServer, namespace: str) -> None:
    backends = [FaultyBackend(at(valkey.url, namespace)) for _ in range(3)]
    done = list[int]()
    apps = [idle_app(backend, done) for backend in backends]
    outside = idle_app(at(valkey.url, namespace), [])
    async with outside.client(), apps[0], apps[1], apps[2]:
        for first in range(0, 60, 3):
            backends[first % 2].fail("claim", "reply lost" if first % 4 else "request lost")
            for handle in [await outside.tasks["note"].submit(first + address) for address in range(3)]:
                await handle.result(timeout=60)
    assert Counter(done) == Counter(range(60))
