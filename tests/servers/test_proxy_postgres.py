"""The fault proxy before a PostgreSQL: what was committed, and what the client gets to know of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from storekit.proxy import Fault, FaultProxy
from storekit.servers import PostgresServer

Connection = Any  # asyncpg has no types
LOST = (asyncpg.ConnectionDoesNotExistError, ConnectionResetError)


@pytest.fixture
async def proxy(postgres: PostgresServer) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(postgres.address) as proxy:
        yield proxy


@pytest.fixture
async def table(postgres: PostgresServer, namespace: str) -> AsyncIterator[str]:
    direct = await asyncpg.connect(postgres.url)
    await direct.execute(f"CREATE TABLE {namespace} (n int, filler text)")
    yield namespace
    await direct.execute(f"DROP TABLE {namespace}")
    await direct.close()


@pytest.fixture
async def client(postgres: PostgresServer, proxy: FaultProxy) -> AsyncIterator[Connection]:
    client = await asyncpg.connect(postgres.url_at(proxy.address), timeout=10)
    yield client
    client.terminate()


async def count(server: PostgresServer, table: str) -> object:
    connection = await asyncpg.connect(server.url)
    try:
        return await connection.fetchval(f"SELECT count(*) FROM {table}")
    finally:
        await connection.close()


@pytest.mark.parametrize(("fault", "done"), [("cut before", 0), ("cut after", 1)])
async def test_a_cut_leaves_the_client_in_doubt_and_the_proxy_knows(
    postgres: PostgresServer, proxy: FaultProxy, client: Connection, table: str, fault: Fault, done: int
) -> None:
    proxy.fail_next(fault)
    with pytest.raises(LOST):
        await client.execute(f"INSERT INTO {table} VALUES (1)")
    assert await count(postgres, table) == done
    assert proxy.struck == [fault]


@pytest.mark.parametrize(("fault", "done"), [("cut before", 0), ("cut after", 1)])
async def test_a_statement_with_arguments_is_met_at_its_values(
    postgres: PostgresServer, proxy: FaultProxy, client: Connection, table: str, fault: Fault, done: int
) -> None:
    proxy.fail_next(fault, match=b"the value")
    with pytest.raises(LOST):
        await client.execute(f"INSERT INTO {table} VALUES ($1, $2)", 1, "the value")
    assert await count(postgres, table) == done


async def test_the_text_of_a_statement_is_a_request_of_its_own(
    postgres: PostgresServer, proxy: FaultProxy, client: Connection, table: str
) -> None:
    proxy.fail_next("cut after", match=b"INSERT")
    with pytest.raises(LOST):
        await client.execute(f"INSERT INTO {table} VALUES ($1)", 1)
    assert await count(postgres, table) == 0


async def test_a_reply_that_begins_before_the_commit_is_awaited_to_its_end(
    postgres: PostgresServer, proxy: FaultProxy, client: Connection, table: str
) -> None:
    """Rows that fill the server's buffer leave early: the first of them says nothing about the last."""
    insert = f"INSERT INTO {table} VALUES ($1, repeat('x', 1000)) RETURNING filler"
    await client.execute(f"CREATE FUNCTION pg_temp.write(int) RETURNS text LANGUAGE sql AS $${insert}$$")
    proxy.fail_next("cut after", match=b"generate_series")
    with pytest.raises(LOST):
        await client.execute("SELECT pg_temp.write(n), pg_sleep(0.002) FROM generate_series(1, 200) n")
    assert await count(postgres, table) == 200


async def test_a_delayed_request_arrives_late_but_whole(proxy: FaultProxy, client: Connection) -> None:
    loop = asyncio.get_running_loop()
    proxy.fail_next("delay", seconds=0.2)
    before = loop.time()
    assert await client.fetchval("SELECT 1") == 1
    assert loop.time() - before >= 0.2


async def test_a_black_hole_swallows_a_request_and_healing_cuts_its_connection(
    postgres: PostgresServer, proxy: FaultProxy, client: Connection, table: str
) -> None:
    proxy.fail_next("black hole")
    lost = asyncio.create_task(client.execute(f"INSERT INTO {table} VALUES (1)"))
    await proxy.until_struck()
    assert not lost.done()
    proxy.heal()
    with pytest.raises(LOST):
        await lost
    assert await count(postgres, table) == 0


async def test_a_black_hole_for_all_accepts_and_never_answers(postgres: PostgresServer, proxy: FaultProxy) -> None:
    proxy.black_hole()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await asyncpg.connect(postgres.url_at(proxy.address))
    assert proxy.accepted == 1


async def test_refused_connections_are_taken_again_after_healing(
    postgres: PostgresServer, proxy: FaultProxy, client: Connection
) -> None:
    proxy.refuse()
    assert await client.fetchval("SELECT 1") == 1, "a connection that exists goes on"
    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(postgres.url_at(proxy.address))
    proxy.heal()
    other = await asyncpg.connect(postgres.url_at(proxy.address))
    assert await other.fetchval("SELECT 2") == 2
    await other.close()


async def test_a_fault_can_strike_the_handshake(postgres: PostgresServer, proxy: FaultProxy) -> None:
    proxy.fail_next("cut after")
    with pytest.raises((*LOST, ConnectionError)):
        await asyncpg.connect(postgres.url_at(proxy.address))
    assert proxy.struck == ["cut after"]


async def test_it_works_in_a_thread_of_its_own_and_on_a_unix_socket(
    postgres: PostgresServer, table: str, short_folder: Path
) -> None:
    with FaultProxy(postgres.address, listen=short_folder / ".s.PGSQL.5432") as proxy:
        client = await asyncpg.connect(postgres.url_at(proxy.address))
        proxy.fail_next("black hole", match=b"INSERT")
        lost = asyncio.create_task(client.execute(f"INSERT INTO {table} VALUES (1)"))
        await proxy.until_struck()
        assert not lost.done()
        proxy.cut()
        with pytest.raises(LOST):
            await lost
    assert await count(postgres, table) == 0
