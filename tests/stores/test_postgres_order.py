"""Locks are waited for in one order (functions/locks.sql), by every verb, and so never in a ring."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from rota.stores.postgres import PostgresBackend
from storekit.servers import PostgresServer
from tests.stores.postgres_builds import checked, install, unordered
from tests.stores.postgres_crowd import mingle


@pytest.fixture
async def backends(postgres: PostgresServer, namespace: str) -> AsyncIterator[list[PostgresBackend]]:
    """Four processes, as it were, on one schema."""
    found = [PostgresBackend.from_url(f"{postgres.url}&schema={namespace}") for _ in range(4)]
    await found[0].migrate()
    yield found
    connection = await asyncpg.connect(postgres.url)
    await connection.execute(f"DROP SCHEMA {namespace} CASCADE")
    await connection.close()


def test_many_rows_are_locked_in_the_order_of_their_keys() -> None:
    assert unordered() == []


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_verb_waits_for_locks_in_one_order(backends: list[PostgresBackend], seed: int) -> None:
    """Each lock is noted before it is waited for; the verb fails that waits for one out of order."""
    await install(backends[0], checked())
    await mingle(list(backends), 60, seed)


async def test_a_verb_that_waits_out_of_order_is_found(backends: list[PostgresBackend]) -> None:
    """The check itself: leases are locked before the queue."""
    await install(backends[0], checked())
    connection = await asyncpg.connect(backends[0].address.dsn)
    await connection.execute(f"SET search_path TO {backends[0].schema}")
    async with connection.transaction():
        await connection.execute(
            "SELECT noted('leases', 'a', true), noted('queue', 'b', true), noted('leases', 'a', true)"
        )
        await connection.execute("SELECT noted('specs', 'c', false)")
        with pytest.raises(asyncpg.DataError, match=r"lock order: specs \(d\) after queue"):
            await connection.execute("SELECT noted('specs', 'd', true)")
    await connection.close()


async def test_a_crowd_meets_in_no_ring(backends: list[PostgresBackend]) -> None:
    """With the functions as they are; that no deadlock happened is seen at the end of the session."""
    await mingle(list(backends), 100, seed=2)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 14))
async def test_a_crowd_meets_in_no_ring_for_long(backends: list[PostgresBackend], seed: int) -> None:
    await mingle(list(backends), 2_000, seed)
