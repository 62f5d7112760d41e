"""Redis and Valkey: they start, answer, keep their data and leave nothing behind."""

import asyncio
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import pytest
import redis
from redis.asyncio import Redis as AsyncRedis
from redis.cluster import RedisCluster as ClusterClient

from storekit.servers import (
    HasUrl,
    RedisCluster,
    RedisSentinel,
    RedisServer,
    ServerFailed,
    redis_of_machine,
    redis_of_wheel,
    valkey_of_wheel,
)
from tests.servers.watching import alive, all_gone, family

MAKERS: dict[str, Callable[[], RedisServer]] = {
    "valkey": lambda: RedisServer(valkey_of_wheel()),
    "redis-6.2": lambda: RedisServer(redis_of_wheel()),
    "tcp": lambda: RedisServer(valkey_of_wheel(), tcp=True),
    "cluster": lambda: RedisCluster(valkey_of_wheel()),
}
if (found := redis_of_machine()) is not None:
    MAKERS[f"redis-{found.major}"] = partial(RedisServer, found)


@pytest.fixture(params=MAKERS)
def server(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    with MAKERS[request.param]() as server:
        yield server


def test_it_keeps_its_data_and_its_url_over_a_restart_and_a_kill(server: RedisServer) -> None:
    url, first = server.url, server.pid
    server.send("SET", "kept", "by restart")
    server.restart()
    assert server.send("GET", "kept") == "by restart"
    server.send("SET", "kept", "by kill")
    server.kill()
    assert not server.running
    server.start()
    assert server.send("GET", "kept") == "by kill"
    assert server.url == url
    assert server.pid != first


def test_nothing_is_left_of_it(server: RedisServer) -> None:
    pids = family(server.pid)
    assert alive(pids) == [server.pid]
    server.close()
    assert all_gone(pids)
    assert not server.folder.exists()


def test_the_wheels_carry_the_versions_we_promise(valkey: RedisServer, redis_6: RedisServer) -> None:
    assert valkey.info("server")["valkey_version"].startswith("9.")
    assert redis_6.info("server")["redis_version"].startswith("6.2.")


def test_redis_py_reaches_each_kind_by_its_url(valkey: RedisServer, redis_6: RedisServer, namespace: str) -> None:
    for server in (valkey, redis_6):
        with closing(redis.Redis.from_url(server.url)) as client:
            client.set(namespace, "here")
            assert server.send("GET", namespace) == "here"


def test_redis_py_finds_all_slots_in_the_cluster(redis_cluster: RedisCluster, namespace: str) -> None:
    url = redis_cluster.url.replace("redis+cluster://", "redis://")
    with closing(ClusterClient.from_url(url)) as client:
        for i in range(20):
            client.set(f"{namespace}:{i}", i)
        assert client.get(f"{namespace}:7") == b"7"
        assert client.cluster_info()["cluster_known_nodes"] == "1"


def test_a_database_of_its_own_is_in_the_url(valkey: RedisServer, namespace: str) -> None:
    with closing(redis.Redis.from_url(valkey.url_at(valkey.address, database=3))) as client:
        client.set(namespace, "elsewhere")
    assert valkey.send("GET", namespace) is None


def test_options_reach_the_server() -> None:
    with RedisServer(valkey_of_wheel(), {"appendfsync": "always", "maxmemory": "64mb"}) as server:
        assert server.send("CONFIG", "GET", "appendfsync") == ["appendfsync", "always"]
        assert server.send("CONFIG", "GET", "maxmemory") == ["maxmemory", str(64 * 1024 * 1024)]


async def test_a_frozen_server_answers_when_it_is_thawed() -> None:
    with RedisServer(valkey_of_wheel()) as server:
        client = AsyncRedis.from_url(server.url)
        await client.set("n", 1)
        await asyncio.to_thread(server.freeze)
        answer = asyncio.ensure_future(client.incr("n"))
        done, _ = await asyncio.wait([answer], timeout=0.2)
        assert not done
        await asyncio.to_thread(server.thaw)
        assert await answer == 2
        await client.aclose()


async def test_a_restart_from_a_thread_outlives_the_thread() -> None:
    """Linux would tie a server to the thread that started it, if asked to end it with its parent."""
    with RedisServer(valkey_of_wheel()) as server:
        loop = asyncio.get_running_loop()
        await asyncio.to_thread(server.restart)
        await loop.shutdown_default_executor()
        assert server.send("PING") == "PONG"


def test_a_server_that_does_not_start_shows_its_log() -> None:
    server = RedisServer(valkey_of_wheel(), {"appendfsync": "sometimes"})
    with pytest.raises(ServerFailed, match=r"(?s)ended before it could answer.*appendfsync sometimes"), server:
        pass
    assert not server.folder.exists()


def test_an_ended_server_cannot_be_frozen() -> None:
    with RedisServer(valkey_of_wheel()) as server:
        server.kill()
        with pytest.raises(ServerFailed, match="has ended; it cannot be told to freeze"):
            server.freeze()


def test_only_its_owner_reaches_it(valkey: RedisServer) -> None:
    assert stat.S_IMODE(os.stat(valkey.folder).st_mode) == 0o700
    with RedisServer(valkey_of_wheel(), tcp=True) as server:
        assert server.send("CONFIG", "GET", "bind") == ["bind", "127.0.0.1"]


def test_each_kind_answers_through_the_fixture(any_redis: HasUrl) -> None:
    assert any_redis.url.startswith(("unix://", "redis://", "rediss://", "redis+cluster://", "redis+sentinel://"))
    server = any_redis.primary if isinstance(any_redis, RedisSentinel) else any_redis
    if isinstance(server, RedisServer):
        assert server.send("PING") == "PONG"


def test_closing_a_stopped_server_is_no_error() -> None:
    with RedisServer(valkey_of_wheel()) as server:
        server.stop()
    assert all_gone([], server.folder)
