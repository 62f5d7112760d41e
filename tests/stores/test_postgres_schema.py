"""Migrations stay as they were released; functions are those of the newest build that has opened the schema."""

import asyncio
import hashlib
import logging
import re
from collections.abc import AsyncIterator
from urllib.parse import quote

import asyncpg
import pytest

from rota.domain.lifecycle import Succeeded
from rota.errors import StoreCorrupt, StoreUnavailable
from rota.stores.postgres import PostgresBackend, schema
from storekit.contract import Stage, new_run
from storekit.servers import PostgresServer

MIGRATIONS = {
    1: "c6af44f0a58c97f52e06cef8b2ac83a0ea7726612774bbea2bb5fe947f2c525e",
}
"""Never change a released one: a schema that has the old form does not get the new one. Add the next number."""
FUNCTIONS = (12, "fc0652e6f87e3bd38cbce481b4d2b2bd184b0991fd5e302752ba510d1e50d183")
"""The number and the digest of all functions. Whoever changes a function adds one to the number in schema.py."""

MADE = """
SELECT p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' AS signature, p.oid, p.prosrc
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1
"""
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
NEWER = "CREATE OR REPLACE FUNCTION newer() RETURNS int LANGUAGE sql AS $$\nSELECT 1\n$$;"
OTHER_HEADS = "ARRAY(SELECT head || ' STRICT' FROM unnest(heads) AS head)"
OLDER = """
SET search_path TO {schema};
DROP FUNCTION missed, send_hints, renew;
CREATE FUNCTION missed(names text[]) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION send_hints(me text, hinted text[], touched text[]) RETURNS void LANGUAGE sql AS 'SELECT 1 / 0';
CREATE FUNCTION send_hints(me text, hinted text[], touched text[], unheard text[]) RETURNS text
    LANGUAGE sql AS 'SELECT 1 / 0';
CREATE FUNCTION forgotten() RETURNS text LANGUAGE sql AS 'SELECT 1 / 0';
CREATE FUNCTION somebody_elses() RETURNS text LANGUAGE sql AS 'SELECT 1';
UPDATE functions SET number = number - 1, digest = 'older', heads = heads || ARRAY[
    'forgotten() RETURNS text LANGUAGE sql', 'missed(names text[]) RETURNS integer LANGUAGE sql',
    'send_hints(me text, hinted text[], touched text[]) RETURNS void LANGUAGE sql'];
"""


def test_migrations_are_as_they_were_released() -> None:
    found = {number: hashlib.sha256(text.encode()).hexdigest() for number, text in schema.migrations().items()}
    assert found == MIGRATIONS


def test_changed_functions_have_a_larger_number() -> None:
    assert (schema.FUNCTIONS, schema.digest()) == FUNCTIONS, "add one to the number, and write down the digest here"


@pytest.fixture
async def connection(postgres: PostgresServer) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres.url, statement_cache_size=0)
    yield connection
    await connection.close()


@pytest.fixture
async def backend(postgres: PostgresServer, namespace: str) -> PostgresBackend:
    backend = PostgresBackend.from_url(f"{postgres.url}&schema={namespace}")
    await backend.migrate()
    return backend


async def made(connection: asyncpg.Connection, backend: PostgresBackend) -> dict[str, tuple[int, str]]:
    """The functions that are there: what each does, and which creation it is."""
    rows = await connection.fetch(MADE, backend.address.schema)
    prefix = re.compile(f"({re.escape(backend.schema)}|{re.escape(backend.address.schema)})[.]")
    return {prefix.sub("", row["signature"]): (row["oid"], row["prosrc"]) for row in rows}


def sources(functions: dict[str, tuple[int, str]]) -> dict[str, str]:
    return {signature: source for signature, (_, source) in functions.items()}


async def works(backend: PostgresBackend) -> bool:
    async with backend.open() as store:
        stage, new = Stage(backend, store), new_run(key="k", unique="queued")
        await stage.put(new)
        (run,) = (await stage.claim(f"worker of {new.id}")).runs
        return await stage.end(run, Succeeded()) == "applied"


async def test_a_schema_with_older_functions_gets_those_of_today(
    connection: asyncpg.Connection, backend: PostgresBackend
) -> None:
    today = await made(connection, backend)
    await connection.execute(OLDER.replace("{schema}", backend.schema))
    assert await works(backend)
    there = await made(connection, backend)
    assert sources(there) == {**sources(today), "somebody_elses()": "SELECT 1"}
    again = {signature.partition("(")[0] for signature in today if there[signature] != today[signature]}
    assert again == {"missed", "send_hints", "renew"}, "a verb that is under way would miss the others"


async def test_a_schema_of_an_unreleased_version_is_refused_and_left_alone(
    connection: asyncpg.Connection, backend: PostgresBackend
) -> None:
    """Its migrations had the numbers 7 to 12; what it holds must not be taken for a schema of today or of tomorrow."""
    await connection.execute(f"""
        DELETE FROM {backend.schema}.migrations; INSERT INTO {backend.schema}.migrations SELECT generate_series(7, 12);
        UPDATE {backend.schema}.functions SET number = 22""")
    before = await made(connection, backend)
    for _ in range(2):
        with pytest.raises(
            StoreCorrupt, match=f"schema {backend.address.schema} .* unreleased version of rota; drop it"
        ):
            await backend.migrate()
    assert await made(connection, backend) == before
    await connection.execute(f"DROP TABLE {backend.schema}.functions")  # versions 7 and 8 had none
    with pytest.raises(StoreCorrupt, match="some other program"):
        await backend.migrate()


async def test_builds_that_open_a_schema_in_turns_leave_it_the_newest_functions(
    connection: asyncpg.Connection, backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = schema.functions()
    with monkeypatch.context() as newer:
        newer.setattr(schema, "FUNCTIONS", schema.FUNCTIONS + 1)
        newer.setattr(schema, "functions", lambda: files + NEWER)
        assert await works(backend)
        newest = await made(connection, backend)
        assert "newer()" in newest
    assert await works(backend), "the older one works with them"
    assert await made(connection, backend) == newest


async def test_of_two_builds_with_the_same_number_the_first_stays(
    connection: asyncpg.Connection, backend: PostgresBackend, caplog: pytest.LogCaptureFixture
) -> None:
    before = await made(connection, backend)
    await connection.execute(f"UPDATE {backend.schema}.functions SET digest = 'of another build'")
    with caplog.at_level(logging.WARNING, "rota"):
        assert await works(backend)
    assert "other functions of the same number" in caplog.text
    assert await made(connection, backend) == before


async def test_many_that_open_an_older_schema_at_once_replace_its_functions_once(
    connection: asyncpg.Connection, backend: PostgresBackend, postgres: PostgresServer
) -> None:
    log = f"{backend.schema}.log"
    await connection.execute(OLDER.replace("{schema}", backend.schema))
    await connection.execute(f"""
        CREATE TABLE {log} (pid int);
        CREATE FUNCTION {backend.schema}.noted() RETURNS event_trigger LANGUAGE plpgsql AS
            $$BEGIN INSERT INTO {log} VALUES (pg_backend_pid()); END$$;
        CREATE EVENT TRIGGER noted ON ddl_command_end WHEN TAG IN ('CREATE FUNCTION')
            EXECUTE FUNCTION {backend.schema}.noted()""")
    other = await asyncpg.connect(postgres.url)
    try:
        async with connection.transaction():
            await connection.execute(f"SELECT pg_advisory_xact_lock({schema.LOCK})")
            opening = [asyncio.create_task(backend.migrate()) for _ in range(3)]
            while await other.fetchval(WAITING) < 3:
                pass
        await asyncio.gather(*opening)
        assert await other.fetchval(f"SELECT count(DISTINCT pid) FROM {log}") == 1
    finally:
        await other.execute("DROP EVENT TRIGGER noted")
        await other.close()


async def test_who_may_not_create_opens_what_is_up_to_date_and_what_is_newer(
    connection: asyncpg.Connection, backend: PostgresBackend, postgres: PostgresServer
) -> None:
    role = f"{backend.address.schema}_worker"
    await connection.execute(f"""
        CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {backend.schema} TO {role};
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {backend.schema} TO {role};
        GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {backend.schema} TO {role}""")
    worker = PostgresBackend.from_url(
        backend.address.dsn.replace("rota@", f"{role}@") + f"&schema={backend.address.schema}"
    )
    assert await works(worker)
    await connection.execute(f"UPDATE {backend.schema}.functions SET number = number + 1")
    assert await works(worker)
    await connection.execute(f"UPDATE {backend.schema}.functions SET number = 0")
    with pytest.raises(StoreUnavailable, match="see the grants"):
        await works(worker)


async def test_verbs_under_way_survive_that_their_functions_are_replaced(
    connection: asyncpg.Connection, backend: PostgresBackend
) -> None:
    done = asyncio.Event()

    async def work(name: str) -> int:
        async with backend.open() as store:
            stage, rounds = Stage(backend, store), 0
            while not done.is_set():
                run = new_run(name, key=f"{name}{rounds}", unique="done")
                await stage.put(run)
                (claimed,) = (await stage.claim(name, 5, tasks=[name])).runs
                assert await stage.end(claimed, Succeeded()) == "applied"
                rounds += 1
            return rounds

    working = [asyncio.create_task(work(name)) for name in ("a", "b", "c")]
    for _ in range(8):
        await connection.execute(f"UPDATE {backend.schema}.functions SET number = 0, heads = {OTHER_HEADS}")
        await backend.migrate()
    done.set()
    assert min(await asyncio.gather(*working)) > 0


async def test_a_schema_is_told_from_one_whose_name_reads_alike(
    connection: asyncpg.Connection, postgres: PostgresServer, backend: PostgresBackend
) -> None:
    """A name in quotes and one in capitals are names of their own: their functions are, too."""
    before = await made(connection, backend)
    for name in (f'"{backend.address.schema}"', backend.address.schema.upper()):
        alike = PostgresBackend.from_url(f"{postgres.url}&schema={quote(name)}")
        await alike.migrate()
        await connection.execute(f"UPDATE {alike.schema}.functions SET number = 1, heads = {OTHER_HEADS}")
        await alike.migrate()
        assert await made(connection, backend) == before
        assert (await made(connection, alike)).keys() == before.keys()


async def test_a_plan_says_what_a_migration_would_do_and_does_nothing(
    postgres: PostgresServer, namespace: str, connection: asyncpg.Connection
) -> None:
    backend = PostgresBackend.from_url(f"{postgres.url}&schema={namespace}")
    assert await backend.planned() == (0, schema.newest(), True)
    assert not await connection.fetchval("SELECT count(*) FROM pg_namespace WHERE nspname = $1", namespace)
    await backend.migrate()
    assert await backend.planned() == (schema.newest(), schema.newest(), False)
