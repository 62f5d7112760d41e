"""`rota doctor` names what keeps PostgreSQL from removing dead rows."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from rota.doctor.checks import Check
from rota.doctor.postgres_upkeep import upkeep_checks
from rota.stores.postgres import PostgresBackend
from storekit.contract import new_run
from storekit.servers import PostgresServer


@pytest.fixture
async def database(postgres: PostgresServer, namespace: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to a database of its own, so that no other test has a transaction in it."""
    server = await asyncpg.connect(postgres.url)
    await server.execute(f"CREATE DATABASE {namespace}")
    url = postgres.url_at(postgres.address, namespace)
    backend = PostgresBackend.from_url(url)
    async with backend.open() as store:
        await store.put([new_run()])
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()
    await server.execute(f"DROP DATABASE {namespace} (FORCE)")
    await server.close()


async def found(connection: asyncpg.Connection, old: float = 60.0) -> dict[str, Check]:
    return {check.name: check for check in await upkeep_checks(connection, "rota", old)}


async def test_a_store_in_good_health(database: asyncpg.Connection) -> None:
    checks = await found(database)
    assert {name: check.verdict for name, check in checks.items()} == {
        "transactions": "ok",
        "dead rows": "ok",
        "autovacuum": "ok",
    }


async def test_the_oldest_transaction_is_named(
    database: asyncpg.Connection, postgres: PostgresServer, namespace: str
) -> None:
    other = await asyncpg.connect(postgres.url_at(postgres.address, namespace))
    async with other.transaction(isolation="repeatable_read"):
        pid = await other.fetchval("SELECT pg_backend_pid() + 0 * txid_current()")
        check = (await found(database, old=0.0))["transactions"]
        assert check.verdict == "warn"
        assert check.detail.startswith(f"pid {pid} of user rota is open for ")
        assert "(idle in transaction): SELECT pg_backend_pid() + 0 * txid_current()" in check.detail
        assert "pg_terminate_backend" in check.advice
    await other.close()


async def test_a_table_that_is_not_vacuumed_is_named(database: asyncpg.Connection) -> None:
    await database.execute("ALTER TABLE rota.queue SET (autovacuum_enabled = false)")
    await database.execute("ALTER TABLE rota.leases RESET (autovacuum_vacuum_cost_delay)")
    check = (await found(database))["autovacuum"]
    assert (check.verdict, check.detail) == ("warn", "leases, queue without the settings that rota made")
