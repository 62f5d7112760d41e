"""The fault proxy before a Redis: what the server has done, and what the client gets to know of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import redis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import TimeoutError as TimedOut
from redis.retry import Retry as BlockingRetry

from storekit.proxy import Fault, FaultProxy
from storekit.servers import RedisServer


@pytest.fixture
async def proxy(valkey: RedisServer) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(valkey.address) as proxy:
        yield proxy


@pytest.fixture
async def client(valkey: RedisServer, proxy: FaultProxy) -> AsyncIterator[Redis]:
    """A client that is connected, and tries everything just once."""
    client = Redis.from_url(
        valkey.url_at(proxy.address), retry=Retry(NoBackoff(), 0), single_connection_client=True, socket_timeout=10
    )
    await client.ping()
    yield client
    await client.aclose()


async def count(server: RedisServer, key: str) -> int:
    return int(str(await asyncio.to_thread(server.send, "GET", key) or 0))


@pytest.mark.parametrize(("fault", "done"), [("cut before", 0), ("cut after", 1)])
async def test_a_cut_leaves_the_client_in_doubt_and_the_proxy_knows(
    valkey: RedisServer, proxy: FaultProxy, client: Redis, namespace: str, fault: Fault, done: int
) -> None:
    proxy.fail_next(fault)
    with pytest.raises(Disconnected):
        await client.incr(namespace)
    assert await count(valkey, namespace) == done
    assert proxy.struck == [fault]
    assert await client.incr(namespace) == done + 1


async def test_a_fault_waits_for_the_request_that_it_is_meant_for(
    proxy: FaultProxy, client: Redis, namespace: str
) -> None:
    proxy.fail_next("cut before", match=b"INCR", skip=1)
    await client.set(namespace, 5)
    assert await client.incr(namespace) == 6
    with pytest.raises(Disconnected):
        await client.incr(namespace)
    assert await client.incr(namespace) == 7


async def test_faults_strike_in_the_order_in_which_they_were_planned(
    valkey: RedisServer, proxy: FaultProxy, client: Redis, namespace: str
) -> None:
    proxy.fail_next("cut before", times=2, match=b"INCR")
    proxy.fail_next("cut after", match=b"INCR")
    for _ in range(3):
        with pytest.raises(Disconnected):
            await client.incr(namespace)
    assert proxy.struck == ["cut before", "cut before", "cut after"]
    assert await count(valkey, namespace) == 1


async def test_a_request_of_many_packets_is_one_request(
    valkey: RedisServer, proxy: FaultProxy, client: Redis, namespace: str
) -> None:
    proxy.fail_next("cut after")
    with pytest.raises(Disconnected):
        await client.set(namespace, "x" * 3_000_000)
    assert await asyncio.to_thread(valkey.send, "STRLEN", namespace) == 3_000_000


async def test_a_delayed_request_arrives_late_but_whole(proxy: FaultProxy, client: Redis, namespace: str) -> None:
    loop = asyncio.get_running_loop()
    proxy.fail_next("delay", seconds=0.2)
    before = loop.time()
    assert await client.incr(namespace) == 1
    assert loop.time() - before >= 0.2
    proxy.delay(0.1)
    before = loop.time()
    assert await client.incr(namespace) == 2
    assert loop.time() - before >= 0.1


async def test_a_black_hole_swallows_one_request_and_all_that_follow_on_its_connection(
    valkey: RedisServer, proxy: FaultProxy, client: Redis, namespace: str
) -> None:
    proxy.fail_next("black hole")
    lost = asyncio.ensure_future(client.incr(namespace))
    await proxy.until_struck()
    assert not lost.done()
    proxy.heal()
    with pytest.raises(Disconnected):
        await lost
    assert await count(valkey, namespace) == 0
    assert await client.incr(namespace) == 1


async def test_a_black_hole_for_all_accepts_and_never_answers(
    valkey: RedisServer, proxy: FaultProxy, client: Redis, namespace: str
) -> None:
    proxy.black_hole()
    accepted = proxy.accepted
    other = Redis.from_url(valkey.url_at(proxy.address), retry=Retry(NoBackoff(), 0), socket_timeout=0.2)
    with pytest.raises(TimedOut):
        await other.incr(namespace)
    assert proxy.accepted == accepted + 1
    await other.aclose()
    proxy.heal()
    assert await count(valkey, namespace) == 0


async def test_refused_connections_are_taken_again_after_healing(
    valkey: RedisServer, proxy: FaultProxy, client: Redis, namespace: str
) -> None:
    proxy.refuse()
    assert await client.incr(namespace) == 1, "a connection that exists goes on"
    other = Redis.from_url(valkey.url_at(proxy.address), retry=Retry(NoBackoff(), 0))
    with pytest.raises(Disconnected, match=r"refused|Connect call failed"):
        await other.incr(namespace)
    proxy.heal()
    assert await other.incr(namespace) == 2
    await other.aclose()


async def test_a_fault_can_be_for_one_connection_only(
    valkey: RedisServer, proxy: FaultProxy, client: Redis, namespace: str
) -> None:
    other = Redis.from_url(valkey.url_at(proxy.address), retry=Retry(NoBackoff(), 0), single_connection_client=True)
    await other.ping()
    first, second = proxy.links
    first.fail_next("cut after")
    assert await other.incr(namespace) == 1
    with pytest.raises(Disconnected):
        await client.incr(namespace)
    second.cut()
    with pytest.raises(Disconnected):
        await other.incr(namespace)
    assert await count(valkey, namespace) == 2
    await other.aclose()


async def test_cutting_reaches_every_connection(proxy: FaultProxy, client: Redis, namespace: str) -> None:
    proxy.cut()
    with pytest.raises(Disconnected):
        await client.incr(namespace)
    assert await client.incr(namespace) == 1
    assert len(proxy.links) == 1


def test_it_works_in_a_thread_of_its_own_and_on_a_unix_socket(
    valkey: RedisServer, namespace: str, short_folder: Path
) -> None:
    with FaultProxy(valkey.address, listen=short_folder / "proxy.sock") as proxy:
        url, once = valkey.url_at(proxy.address), BlockingRetry(NoBackoff(), 0)
        with closing(redis.Redis.from_url(url, retry=once, single_connection_client=True)) as client:
            client.ping()
            proxy.fail_next("cut after", match=b"INCR")
            with pytest.raises(Disconnected):
                client.incr(namespace)
            assert client.get(namespace) == b"1"
            proxy.links[0].cut()
            with pytest.raises(Disconnected):
                client.incr(namespace)
            proxy.refuse()
            with pytest.raises(Disconnected):
                client.incr(namespace)
            proxy.heal()
            assert client.incr(namespace) == 2
    assert not (short_folder / "proxy.sock").exists()


async def test_a_server_that_is_down_looks_down_through_the_proxy(short_folder: Path) -> None:
    async with FaultProxy(short_folder / "nobody") as proxy:
        assert not isinstance(proxy.address, Path)
        client = Redis(host=proxy.address[0], port=proxy.address[1], retry=Retry(NoBackoff(), 0))
        with pytest.raises(Disconnected):
            await client.ping()
        await client.aclose()
        assert proxy.accepted == 1
