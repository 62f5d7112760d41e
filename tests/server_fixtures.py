"""Fixtures: the servers that tests run against, started when the first test asks for one.

Each process of a parallel run has its own: with two cores to itself, Valkey and Redis start in less than 0.1 s,
PostgreSQL in 0.15 s, a Cluster in 2.1 s and Sentinel in 1.4 s, and with their guards they need 10, 25, 10 and 25 MB.
That is cheaper than sharing them, where one test can disturb another. Only what `initdb` makes (0.4 s) is shared. A
test that stops, freezes or reconfigures a server starts one for itself.
"""

import asyncio
import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import asyncpg
import pytest

from storekit.servers import (
    HasUrl,
    Kind,
    PostgresServer,
    RedisCluster,
    RedisSentinel,
    RedisServer,
    postgres_kinds,
    redis_kinds,
)
from storekit.servers.postgres import remove_template

S = TypeVar("S")


class Servers:
    """One server of each kind that was asked for; they run until the session ends."""

    def __init__(self, kinds: dict[str, Kind]) -> None:
        self._kinds = kinds
        self._started: dict[str, HasUrl] = {}
        self._running = ExitStack()

    def get(self, kind: str) -> HasUrl:
        if kind not in self._started:
            self._started[kind] = self._running.enter_context(self._kinds[kind]())
        return self._started[kind]

    def get_as(self, kind: str, expected: type[S]) -> S:
        server = self.get(kind)
        assert isinstance(server, expected)
        return server

    def started(self, expected: type[S]) -> list[S]:
        return [server for server in self._started.values() if isinstance(server, expected)]

    def close(self) -> None:
        self._running.close()


@pytest.fixture(scope="session")
def postgres_templates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that all the processes of this run share, for what `initdb` makes."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    yield shared
    for template in {path.with_suffix("") for path in shared.glob("postgres-*.lock")}:
        remove_template(template)


@pytest.fixture(scope="session")
def servers(postgres_templates: Path) -> Iterator[Servers]:
    servers = Servers({**redis_kinds(), **postgres_kinds(postgres_templates)})
    yield servers
    try:
        met = [ring_on(server) for server in servers.started(PostgresServer) if deadlocks_on(server)]
    finally:
        servers.close()
    assert not met, "locks of verbs met in a ring, see functions/locks.sql:\n" + "\n".join(met)


def ring_on(server: PostgresServer) -> str:
    """What the server's log says about the first ring of locks."""
    return f"{server.url}: {server.log[server.log.find('deadlock detected') :][:3000]}"


def deadlocks_on(server: PostgresServer) -> int:
    """How often this server had to end a ring of locks since it started. A test that makes one on purpose starts a
    server of its own."""

    async def read() -> int:
        connection = await asyncpg.connect(server.url)
        try:
            return int(await connection.fetchval("SELECT sum(deadlocks) FROM pg_stat_database"))
        finally:
            await connection.close()

    return asyncio.run(read())


@pytest.fixture(scope="session")
def valkey(servers: Servers) -> RedisServer:
    return servers.get_as("valkey-9", RedisServer)


@pytest.fixture(scope="session")
def redis_6(servers: Servers) -> RedisServer:
    return servers.get_as("redis-6.2", RedisServer)


@pytest.fixture(scope="session")
def redis_cluster(servers: Servers) -> RedisCluster:
    return servers.get_as("cluster", RedisCluster)


@pytest.fixture(scope="session")
def redis_sentinel(servers: Servers) -> RedisSentinel:
    return servers.get_as("sentinel", RedisSentinel)


@pytest.fixture(scope="session")
def postgres(servers: Servers) -> PostgresServer:
    return servers.get_as("postgres-18", PostgresServer)


@pytest.fixture(params=redis_kinds())
def any_redis(request: pytest.FixtureRequest, servers: Servers) -> HasUrl:
    """Each Redis in turn: the required kinds, and those found on the machine."""
    return servers.get(request.param)


@pytest.fixture(params=postgres_kinds())
def any_postgres(request: pytest.FixtureRequest, servers: Servers) -> HasUrl:
    """Each PostgreSQL in turn."""
    return servers.get(request.param)


@pytest.fixture
def namespace() -> str:
    """A name that no other test uses, for the keys or the schema of this one: a server may be somebody else's."""
    return f"test_{uuid.uuid4().hex[:12]}"
