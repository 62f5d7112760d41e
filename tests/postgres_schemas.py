"""Fixtures: empty PostgreSQL stores, on the servers that `server_fixtures` starts."""

import asyncio
import uuid
from collections.abc import Callable, Iterator

import asyncpg
import pytest

from rota.stores.postgres import PostgresBackend
from tests.server_fixtures import Servers

TABLES = (
    *("queue", "leases", "finished", "waits", "specs", "rates", "marks", "decisions"),
    *("schedules", "workers", "worker_states", "stats", "listeners", "grouped", "floors", "running", "ids"),
    *("callbacks", "events", "task_queues", "turns", "freezes", "audit", "schedule_ids", "decision_ids", "fans"),
    *("counted", "totals", "rollups", "pauses"),
)
KEPT = {"functions", "migrations"}
"""What a test does not change: what the schema is."""
EMPTY = "".join(f"DELETE FROM {{schema}}.{table};" for table in TABLES) + (
    "SELECT setval('{schema}.clock', 1), setval('{schema}.record_until', 1)"
)

Make = Callable[[], PostgresBackend]
NEWEST = "postgres-18"


class Schemas:
    """One schema for each server, made once and emptied before every test: making one takes 0.1 s."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._name = f"test_{uuid.uuid4().hex[:12]}"
        self._made: set[str] = set()

    def backend(self, kind: str) -> PostgresBackend:
        return asyncio.run(self.emptied(kind))

    async def emptied(self, kind: str) -> PostgresBackend:
        url = self._servers.get(kind).url
        backend = PostgresBackend.from_url(f"{url}{'&' if '?' in url else '?'}schema={self._name}")
        if kind not in self._made:
            await backend.migrate()
            self._made.add(kind)
        connection = await asyncpg.connect(backend.address.dsn, statement_cache_size=0)
        try:
            await connection.execute(EMPTY.replace("{schema}", backend.schema))
            found = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", self._name)
            assert {row["tablename"] for row in found} == {*TABLES, *KEPT}, (
                "a test would see the rows of the one before"
            )
        finally:
            await connection.close()
        return backend

    async def drop(self) -> None:
        for kind in self._made:
            connection = await asyncpg.connect(self._servers.get(kind).url, statement_cache_size=0)
            await connection.execute(f"DROP SCHEMA {self._name} CASCADE")
            await connection.close()


@pytest.fixture(scope="session")
def schemas(servers: Servers) -> Iterator[Schemas]:
    schemas = Schemas(servers)
    yield schemas
    asyncio.run(schemas.drop())


@pytest.fixture
def postgres_backend(schemas: Schemas) -> PostgresBackend:
    """An empty store on the newest version."""
    return schemas.backend(NEWEST)
