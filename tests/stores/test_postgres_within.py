"""Transactional submit: a run comes with the caller's own transaction, or never."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.rows import dict_row
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rota import InvalidOptions, Refused, Rota, RunNotFound
from rota.store import ClaimRequest, RunQuery
from rota.stores.postgres import PostgresBackend


class Undo(Exception):
    """Rolls a test's transaction back."""


Open = Callable[[str], AbstractAsyncContextManager[Any]]
OpenSync = Callable[[str], AbstractContextManager[Any]]


@asynccontextmanager
async def by_asyncpg(dsn: str) -> AsyncGenerator[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(dsn: str) -> AsyncGenerator[Any]:
    async with asyncpg.create_pool(dsn, min_size=1) as pool, pool.acquire() as connection, connection.transaction():
        yield connection


@asynccontextmanager
async def by_psycopg(dsn: str) -> AsyncGenerator[Any]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield connection


@asynccontextmanager
async def by_psycopg_with_dicts(dsn: str) -> AsyncGenerator[Any]:
    async with await psycopg.AsyncConnection[dict[str, Any]].connect(dsn, row_factory=dict_row) as connection:
        yield connection


def sqlalchemy_url(dsn: str, driver: str) -> str:
    return dsn.replace("postgresql:", f"postgresql+{driver}:")


@asynccontextmanager
async def by_sqlalchemy(dsn: str, driver: str = "psycopg") -> AsyncGenerator[Any]:
    engine = create_async_engine(sqlalchemy_url(dsn, driver))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_sqlalchemy_session(dsn: str) -> AsyncGenerator[Any]:
    engine = create_async_engine(sqlalchemy_url(dsn, "asyncpg"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


@contextmanager
def by_psycopg_sync(dsn: str) -> Generator[Any]:
    with psycopg.connect(dsn) as connection:
        yield connection


@contextmanager
def by_sqlalchemy_sync(dsn: str) -> Generator[Any]:
    engine = sqlalchemy.create_engine(sqlalchemy_url(dsn, "psycopg"))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@pytest.fixture(
    params=[by_asyncpg, by_asyncpg_pool, by_psycopg, by_psycopg_with_dicts, by_sqlalchemy, by_sqlalchemy_session]
)
def transaction(request: pytest.FixtureRequest, postgres_backend: PostgresBackend) -> AbstractAsyncContextManager[Any]:
    opened: AbstractAsyncContextManager[Any] = request.param(postgres_backend.address.dsn)
    return opened


@pytest.fixture(params=[by_psycopg_sync, by_sqlalchemy_sync])
def transaction_sync(request: pytest.FixtureRequest, postgres_backend: PostgresBackend) -> AbstractContextManager[Any]:
    opened: AbstractContextManager[Any] = request.param(postgres_backend.address.dsn)
    return opened


@pytest.fixture
async def app(postgres_backend: PostgresBackend) -> AsyncIterator[Rota]:
    app = Rota(postgres_backend)

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    async with app.client():
        yield app


async def queued(app: Rota) -> list[str]:
    async with app.backend.open() as store:
        return [run.id for run in (await store.runs(RunQuery())).runs]


class TestAsynchronous:
    async def test_a_committed_run_runs(self, app: Rota, transaction: AbstractAsyncContextManager[Any]) -> None:
        async with transaction as connection:
            run = await app.tasks["greet"].using(connection=connection).submit("Ada")
            assert await queued(app) == []
        assert await queued(app) == [run.id]
        async with app:
            assert await run.result(timeout=30) == "hello Ada"

    async def test_rolled_back_means_never_was(self, app: Rota, transaction: AbstractAsyncContextManager[Any]) -> None:
        run = app.tasks["greet"].handle("never")
        with suppress(Undo):
            async with transaction as connection:
                run = await app.tasks["greet"].using(connection=connection).submit("Ada")
                raise Undo
        assert await queued(app) == []
        with pytest.raises(RunNotFound):
            await run.refresh()

    async def test_options_and_guards_hold_there_as_well(
        self, app: Rota, transaction: AbstractAsyncContextManager[Any]
    ) -> None:
        async with transaction as connection:
            greet = app.tasks["greet"].using(connection=connection, delay=60, key="k", unique="queued", priority=7)
            first, second = await greet.submit("Ada"), await greet.submit("Bob")
        assert (first.id, first.created, second.created) == (second.id, True, False)
        async with app.backend.open() as store:
            (seen,) = (await store.runs(RunQuery())).runs
        assert (seen.key, seen.priority, seen.args) == ("k", 7, b'{"name":"Bob"}')

    async def test_a_refusal_is_raised(self, app: Rota, postgres_backend: PostgresBackend) -> None:
        running = app.tasks["greet"].using(key="k", unique="active")
        await running.submit("Ada")
        async with app.backend.open() as store:
            await store.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))
        async with by_asyncpg(postgres_backend.address.dsn) as connection:
            with pytest.raises(Refused, match="already_running"):
                await app.tasks["greet"].using(connection=connection, key="k", unique="active").submit("Bob")


async def test_an_idle_worker_hears_of_it_at_the_commit(app: Rota, postgres_backend: PostgresBackend) -> None:
    async with postgres_backend.open() as store, store.changes() as hints:
        await store.claim(ClaimRequest("ada", 1, ["greet"], 1, 30))
        async with by_psycopg(postgres_backend.address.dsn) as connection:
            await app.tasks["greet"].using(connection=connection).submit("Ada")
        async for hint in hints:
            if "ada" in hint.workers:
                break


async def test_what_is_no_connection_is_refused(app: Rota) -> None:
    with pytest.raises(InvalidOptions, match="submit takes an asyncpg connection"):
        await app.tasks["greet"].using(connection=object()).submit("Ada")
    with pytest.raises(InvalidOptions, match="submit_sync takes a psycopg connection"):
        app.tasks["greet"].using(connection=object()).submit_sync("Ada")


async def test_another_store_has_no_transactions_to_offer() -> None:
    app = Rota("memory://")

    @app.task
    async def greet(name: str) -> str:
        return name

    with pytest.raises(InvalidOptions, match="needs a PostgreSQL store"):
        await greet.using(connection=object()).submit("Ada")


class TestSynchronous:
    """No event loop has to run, and one that does is not in the way."""

    async def test_a_committed_run_is_queued(self, app: Rota, transaction_sync: AbstractContextManager[Any]) -> None:
        with transaction_sync as connection:
            run = app.tasks["greet"].using(connection=connection).submit_sync("Ada")
        assert await queued(app) == [run.id]

    async def test_rolled_back_means_never_was(self, app: Rota, transaction_sync: AbstractContextManager[Any]) -> None:
        with suppress(Undo), transaction_sync as connection:
            app.tasks["greet"].using(connection=connection).submit_sync("Ada")
            raise Undo
        assert await queued(app) == []
