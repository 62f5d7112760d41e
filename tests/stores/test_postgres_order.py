"""Locks are waited for in one order (functions/locks.sql), by every verb, and so never in a ring."""

from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from rota.stores.postgres import PostgresBackend
from rota.testing.servers import PostgresServer, postgres_of_wheel
from tests.server_fixtures import deadlocks_on
from tests.stores.postgres_builds import checked, install, unordered
from tests.stores.postgres_crowd import mingle


@pytest.fixture(scope="module")
def server(postgres_templates: Path) -> Iterator[PostgresServer]:
    """A server of these tests alone. Runs that wait for others of their batch lock in the order of the batch (decision
    0015), so that a crowd can still make a ring there; other sessions must not count it."""
    programs = postgres_of_wheel()
    with PostgresServer(programs, template=postgres_templates / f"postgres-{programs.version}") as server:
        yield server


@pytest.fixture
async def backends(server: PostgresServer, namespace: str) -> list[PostgresBackend]:
    """Four processes, as it were, on one schema."""
    found = [PostgresBackend.from_url(f"{server.url}&schema={namespace}") for _ in range(4)]
    await found[0].migrate()
    return found


def test_many_rows_are_locked_in_the_order_of_their_keys() -> None:
    assert unordered() == []


async def test_every_verb_waits_for_locks_in_one_order(backends: list[PostgresBackend]) -> None:
    """Each lock is noted before it is waited for; the verb fails that waits for one out of order."""
    await install(backends[0], checked())
    await mingle(list(backends), 60, seed=1)


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


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10, 14))
async def test_a_crowd_meets_in_no_ring(server: PostgresServer, backends: list[PostgresBackend], seed: int) -> None:
    """With the functions as they are."""
    await mingle(list(backends), 2_000, seed)
    assert deadlocks_on(server) == 0
