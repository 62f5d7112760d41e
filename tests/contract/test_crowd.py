"""The crowd and the races of the contract, for longer and with more than one fortune."""

import random
from pathlib import Path

import pytest

from rota.store import Backend
from rota.stores.memory import MemoryBackend
from rota.stores.postgres import PostgresBackend
from rota.stores.sqlite import SqliteBackend
from storekit.contract import Stage
from storekit.contract.crowding import crowd
from storekit.contract.naming_limits import never_exceeded
from storekit.contract.racing import MANNERS, Manner, race
from storekit.servers import redis_kinds
from tests.contract.test_redis import a_namespace_of
from tests.server_fixtures import Servers

SEEDS = range(100, 106)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
async def test_memory_holds_its_limits_for_long(seed: int) -> None:
    await crowd(MemoryBackend(), 100_000, seed)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS[:3])
async def test_sqlite_holds_its_limits_for_long(tmp_path: Path, seed: int) -> None:
    await crowd(SqliteBackend(tmp_path / "rota.db"), 100_000, seed)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", redis_kinds())
async def test_redis_holds_its_limits_for_long(servers: Servers, kind: str) -> None:
    await crowd(a_namespace_of(servers.get(kind).url), 100_000, SEEDS[0])


@pytest.mark.soak
@pytest.mark.parametrize("manner", MANNERS)
async def test_memory_lets_every_child_go_once(manner: Manner) -> None:
    await race(MemoryBackend(), 1000, manner)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("manner", MANNERS)
async def test_sqlite_lets_every_child_go_once(tmp_path: Path, manner: Manner) -> None:
    await race(SqliteBackend(tmp_path / "rota.db"), 1000, manner)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("kind", redis_kinds())
async def test_redis_lets_every_child_go_once(servers: Servers, kind: str, manner: Manner) -> None:
    await race(a_namespace_of(servers.get(kind).url), 1000, manner)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("manner", MANNERS)
async def test_postgres_lets_every_child_go_once(postgres_backend: PostgresBackend, manner: Manner) -> None:
    await race(postgres_backend, 1000, manner)


async def exceed(backend: Backend) -> None:
    async with backend.open() as store:
        await never_exceeded(Stage(backend, store), random.Random(SEEDS[0]), 10_000)


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_memory_and_sqlite_never_exceed_a_named_limit(tmp_path: Path) -> None:
    await exceed(MemoryBackend())
    await exceed(SqliteBackend(tmp_path / "rota.db"))


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_redis_never_exceeds_a_named_limit(servers: Servers) -> None:
    await exceed(a_namespace_of(servers.get("valkey-9").url))


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_postgres_never_exceeds_a_named_limit(postgres_backend: PostgresBackend) -> None:
    await exceed(postgres_backend)
