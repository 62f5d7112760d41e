"""Events of transactions that commit in another order than they began, not at all, or much later."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from rota.domain.event import Event
from rota.domain.run import NewRun
from rota.store import EventQuery
from rota.stores.postgres import PostgresBackend, columns
from storekit.contract.recording import Reader, reader
from storekit.contract.stage import Stage, new_run
from storekit.servers import PostgresServer


@pytest.fixture
async def stage(postgres: PostgresServer, namespace: str) -> AsyncIterator[Stage]:
    backend = PostgresBackend.from_url(f"{postgres.url}&schema={namespace}")
    await backend.migrate()
    async with backend.open() as store:
        yield Stage(backend, store)
    connection = await asyncpg.connect(postgres.url)
    await connection.execute(f"DROP SCHEMA {namespace} CASCADE")
    await connection.close()


def backend_of(stage: Stage) -> PostgresBackend:
    assert isinstance(stage.backend, PostgresBackend)
    return stage.backend


@asynccontextmanager
async def connected(stage: Stage) -> AsyncGenerator[Any]:
    connection = await asyncpg.connect(backend_of(stage).address.dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def put(stage: Stage, connection: Any, run: NewRun) -> None:
    """Put a run as a store does, in the transaction of `connection`."""
    backend = backend_of(stage)
    args = (backend.me, backend.skew, backend.seen, *columns.of_put([run]))
    places = ", ".join(f"${place}" for place in range(1, len(args) + 1))
    await connection.fetch(f"SELECT * FROM {backend.schema}.put({places})", *args)


async def submit(stage: Stage, connection: Any, run: NewRun) -> None:
    await backend_of(stage).put_within(connection, run)


def names(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(event.name, event.id) for event in events]


async def test_an_event_that_commits_late_is_not_skipped(stage: Stage) -> None:
    """The first transaction gets the lower number and commits last: a reader waits for it with the other one."""
    events = await reader(stage)
    slow, quick, other = new_run(), new_run(), new_run()
    async with connected(stage) as one, connected(stage) as two:
        first, second = one.transaction(), two.transaction()
        await first.start()
        await second.start()
        await put(stage, one, slow)
        await put(stage, two, quick)
        await second.commit()
        await stage.put(other)
        assert await events.read() == [], "the numbers below are not decided yet"
        await first.commit()
    assert names(await events.read()) == [("queued", slow.id), ("queued", quick.id), ("queued", other.id)]


async def test_a_transaction_that_is_rolled_back_is_no_event_and_holds_nothing_back(stage: Stage) -> None:
    events = await reader(stage)
    gone, other = new_run(), new_run()
    async with connected(stage) as one:
        transaction = one.transaction()
        await transaction.start()
        await put(stage, one, gone)
        await stage.put(other)
        assert await events.read() == []
        await transaction.rollback()
    assert names(await events.read()) == [("queued", other.id)]


async def test_a_foreign_transaction_holds_nothing_back(stage: Stage) -> None:
    async with connected(stage) as foreign, foreign.transaction(isolation="repeatable_read"):
        await foreign.execute(f"CREATE TABLE {backend_of(stage).schema}.of_others (n integer)")  # it has an id
        events, run = await reader(stage), new_run()
        await stage.put(run)
        assert names(await events.read()) == [("queued", run.id)]


@pytest.mark.parametrize("isolation", ["read_committed", "repeatable_read"])
async def test_a_submit_that_stays_open_holds_nothing_back(stage: Stage, isolation: str) -> None:
    """It records at its commit, also if nobody read events when it began."""
    held, other = new_run(key="a", unique="queued"), new_run()
    async with connected(stage) as caller:
        transaction = caller.transaction(isolation=isolation)
        await transaction.start()
        await submit(stage, caller, held)
        async with asyncio.timeout(4):  # it is not among the writes that a first reader waits for
            events = await reader(stage)
        await stage.put(other)
        assert names(await events.read()) == [("queued", other.id)]
        await transaction.commit()
    assert names(await events.read()) == [("queued", held.id)]


async def test_a_submit_that_joins_refuses_or_expires_is_told_at_its_commit(stage: Stage) -> None:
    holder, late = new_run(key="a", unique="queued"), new_run(key="b", unique="queued", expires_after=60)
    await stage.put(holder, late)
    stage.wait(61)
    events, fresh = await reader(stage), new_run(key="b", unique="queued")
    async with connected(stage) as caller:
        transaction = caller.transaction()
        await transaction.start()
        await submit(stage, caller, new_run(key="a", unique="queued"))
        await submit(stage, caller, new_run(key="a", unique="queued", join="refuse"))
        await submit(stage, caller, fresh)
        assert await events.read() == []
        await transaction.commit()
    found = names(await events.read())
    assert sorted(found) == sorted(
        [("joined", holder.id), ("refused", holder.id), ("cancelled", late.id), ("queued", fresh.id)]
    )


async def test_a_submit_that_is_rolled_back_is_no_event(stage: Stage) -> None:
    events = await reader(stage)
    async with connected(stage) as caller:
        transaction = caller.transaction()
        await transaction.start()
        await submit(stage, caller, new_run())
        await transaction.rollback()
    assert await events.read() == []


async def test_a_first_reader_waits_for_writes_that_do_not_know_of_it(stage: Stage) -> None:
    """Such a write has no event: what it has changed can be read when the reader has its cursor."""
    run = new_run()
    async with connected(stage) as one:
        transaction = one.transaction()
        await transaction.start()
        await put(stage, one, run)
        begun = asyncio.create_task(stage.store.events(EventQuery()))
        async with connected(stage) as other:
            is_recording = f"SELECT last_value > 1 FROM {backend_of(stage).schema}.record_until"
            while not await other.fetchval(is_recording):
                pass
        assert not begun.done()
        await transaction.commit()
    page = await begun
    assert (await stage.see(run)).id == run.id
    assert await Reader(stage, page.cursor).read() == []
