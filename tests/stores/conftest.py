"""What the tests of the PostgreSQL store have in common; those of Redis have `redis_stages`."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from rota.stores.postgres import PostgresBackend
from storekit.contract import Stage


@pytest.fixture
async def stage(postgres_backend: PostgresBackend) -> AsyncIterator[Stage]:
    async with postgres_backend.open() as store:
        yield Stage(postgres_backend, store)


@pytest.fixture
async def beside(postgres_backend: PostgresBackend) -> AsyncIterator[asyncpg.Connection]:
    """A connection beside the store's own, in its schema."""
    address = postgres_backend.address
    connection = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
    yield connection
    await connection.close()
