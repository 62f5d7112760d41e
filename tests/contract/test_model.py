"""Stores against the model: whatever is asked of them in whatever order, they answer alike."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.stores.memory import MemoryBackend
from rota.stores.sqlite import SqliteBackend
from storekit.comparison import Make, search, search_for
from storekit.servers import postgres_kinds, redis_kinds
from tests.contract.test_redis import a_namespace_of
from tests.postgres_schemas import NEWEST, Schemas
from tests.server_fixtures import Servers


@pytest.fixture
def new_file() -> Iterator[Make]:
    """A backend on a new file each time; gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="rota-model-"))
    files = iter(range(1_000_000))
    yield lambda: SqliteBackend(folder / f"{next(files)}.db")
    shutil.rmtree(folder)


async def test_memory_agrees_with_the_model(search_seed: int) -> None:
    await search(MemoryBackend, search_seed, 600)


async def test_sqlite_agrees_with_the_model(new_file: Make, search_seed: int) -> None:
    await search(new_file, search_seed, 100)


@pytest.mark.parametrize("kind", redis_kinds())
async def test_redis_agrees_with_the_model(kind: str, servers: Servers, search_seed: int) -> None:
    url = servers.get(kind).url
    await search(lambda: a_namespace_of(url), search_seed, 150 if kind == "valkey-9" else 10)


async def test_postgres_agrees_with_the_model(schemas: Schemas, search_seed: int) -> None:
    await search(lambda: schemas.emptied(NEWEST), search_seed, 40)


@pytest.mark.soak
async def test_memory_agrees_with_the_model_for_long(search_seed: int, search_seconds: float) -> None:
    assert await search_for(MemoryBackend, search_seed, search_seconds)


@pytest.mark.soak
async def test_sqlite_agrees_with_the_model_for_long(new_file: Make, search_seed: int, search_seconds: float) -> None:
    assert await search_for(new_file, search_seed, search_seconds)


@pytest.mark.soak
@pytest.mark.parametrize("kind", redis_kinds())
async def test_redis_agrees_with_the_model_for_long(
    kind: str, servers: Servers, search_seed: int, search_seconds: float
) -> None:
    url, seconds = servers.get(kind).url, search_seconds if kind == "valkey-9" else search_seconds / 5
    assert await search_for(lambda: a_namespace_of(url), search_seed, seconds)


@pytest.mark.soak
@pytest.mark.parametrize("kind", postgres_kinds())
async def test_postgres_agrees_with_the_model_for_long(
    kind: str, schemas: Schemas, search_seed: int, search_seconds: float
) -> None:
    seconds = search_seconds if kind == NEWEST else search_seconds / 5
    assert await search_for(lambda: schemas.emptied(kind), search_seed, seconds)
