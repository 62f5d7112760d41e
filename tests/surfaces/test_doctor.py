"""`rota doctor` on real servers: what is sound is found sound, and what is not is named with what to do."""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from rota.doctor.postgres_checks import postgres_checks
from rota.doctor.redis_checks import TRIED
from rota.stores.postgres import PostgresBackend
from storekit.servers import HasUrl, PostgresServer, RedisServer, redis_of_wheel, valkey_of_wheel
from storekit.servers.places import free_port
from tests.faults.conftest import in_place
from tests.stores.test_redis_opening import documented_acl
from tests.surfaces.called import Called

LUA = Path(__file__).parents[2] / "src/rota/stores/redis/lua"

Found = dict[str, dict[str, Any]]


def doctor(rota: Called, url: str, code: int = 0) -> Found:
    rota.url = url
    checks: list[dict[str, Any]] = rota.json("doctor", code=code)
    assert all(check["advice"] for check in checks if check["verdict"] != "ok"), "each says what to do"
    return {check["check"]: check for check in checks if check["check"] not in ("python", "rota", "app")}


def unwell(found: Found) -> dict[str, str]:
    """What is not ok, but for the latency: that is how fast the machine is today."""
    return {name: check["verdict"] for name, check in found.items() if check["verdict"] != "ok" and name != "latency"}


@pytest.fixture
def careful() -> Iterator[RedisServer]:
    with RedisServer(valkey_of_wheel(), {"appendfsync": "always"}, tcp=True) as server:
        yield server


def test_a_sound_valkey_is_found_sound(rota: Called, careful: RedisServer, namespace: str) -> None:
    found = doctor(rota, in_place(careful.url, namespace))

    assert unwell(found) == {}
    assert list(found)[:8] == [
        *("server", "latency", "role", "persistence", "eviction", "memory", "permissions", "hints"),
    ]
    assert {"store", "clock", "writable"} <= found.keys()
    assert found["server"]["detail"].startswith("Valkey 9.")
    assert "appendfsync always" in found["persistence"]["detail"]
    assert careful.send("KEYS", "*doctor*") == [], "nothing is left behind"


def test_every_redis_can_be_examined(rota: Called, any_redis: HasUrl, namespace: str) -> None:
    assert set(unwell(doctor(rota, in_place(any_redis.url, namespace)))) <= {"persistence"}  # test servers do not sync


def test_every_postgres_can_be_examined(rota: Called, any_postgres: HasUrl, namespace: str) -> None:
    rota.url = in_place(any_postgres.url, namespace)
    rota("migrate")
    assert set(unwell(doctor(rota, rota.url))) <= {"persistence", "pooler", "hints"}


def test_a_redis_that_forgets_is_warned_about_and_fails_where_it_is_refused(rota: Called, namespace: str) -> None:
    forgetful = {"appendonly": "no", "maxmemory-policy": "allkeys-lru", "maxmemory": "100mb"}
    with RedisServer(redis_of_wheel(), forgetful) as server:
        found = doctor(rota, in_place(server.url, namespace))
        assert unwell(found) == {"persistence": "warn", "eviction": "warn"}
        assert found["eviction"]["advice"] == "set maxmemory-policy noeviction"
        assert "of 100.0 MiB used" in found["memory"]["detail"]

        strictly = doctor(rota, in_place(server.url, namespace) + "&strict=true", code=1)
        assert {"persistence": "fail", "eviction": "fail"}.items() <= unwell(strictly).items()

        server.send("CONFIG", "SET", "appendonly", "yes")
        server.send("CONFIG", "SET", "maxmemory-policy", "noeviction")
        server.send("CONFIG", "SET", "maxmemory", "1000")
        full = doctor(rota, in_place(server.url, namespace), code=1)
        assert (full["memory"]["verdict"], full["persistence"]["verdict"]) == ("fail", "warn")  # appendfsync no


def test_a_redis_user_without_a_command_or_a_channel_is_told_which(
    rota: Called, careful: RedisServer, namespace: str
) -> None:
    careful.send("ACL", "SETUSER", "rota", *documented_acl(namespace, modern=True))
    url = in_place(careful.url.replace("redis://", "redis://rota:secret@"), namespace)
    assert unwell(doctor(rota, url)) == {}
    assert "secret" not in rota("doctor")

    careful.send("ACL", "SETUSER", "rota", "resetchannels", "&{other}*")
    deaf = doctor(rota, url, code=1)
    assert "may not use publish" in deaf["permissions"]["detail"]
    assert deaf["hints"]["verdict"] == "warn"

    careful.send("ACL", "SETUSER", "rota", f"&{{{namespace}}}*", "-zadd", "-hset")
    found = doctor(rota, url, code=1)
    assert found["permissions"]["detail"].startswith("this user may not use hset, zadd in namespace")
    assert "store" not in found, "the rest is not looked at"


def test_the_doctor_tries_every_command_of_the_scripts() -> None:
    scripts = [path.read_text() for path in LUA.rglob("*.lua")]
    used = {word.lower() for text in scripts for word in re.findall(r'\b(?:call|send)\("([A-Z]+)"', text)}
    assert used <= TRIED.keys()


def test_a_replica_is_no_place_for_a_store(rota: Called, careful: RedisServer, namespace: str) -> None:
    with RedisServer(valkey_of_wheel()) as server:
        server.send("REPLICAOF", "127.0.0.1", str(careful.port))
        assert doctor(rota, in_place(server.url, namespace), code=1)["role"]["verdict"] == "fail"


@pytest.mark.parametrize("url", ["redis://ada:secret@127.0.0.1:{port}", "postgresql://ada:secret@127.0.0.1:{port}/db"])
def test_a_server_that_is_not_there_is_one_failed_check_without_its_password(rota: Called, url: str) -> None:
    found = doctor(rota, url.format(port=free_port()), code=1)
    assert unwell(found) == {"server": "fail"}
    assert "ada:***@" in found["server"]["detail"]
    assert "secret" not in str(found)


async def sql(server: PostgresServer, *statements: str) -> None:
    connection = await asyncpg.connect(server.url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


def test_a_postgres_is_found_sound_but_for_what_it_does_not_sync(
    rota: Called, postgres: PostgresServer, namespace: str
) -> None:
    url = in_place(postgres.url, namespace)
    fresh = doctor(rota, url)
    assert (fresh["schema"]["verdict"], fresh["schema"]["detail"]) == ("warn", f"{namespace} is not there yet")
    assert doctor(rota, url)["schema"]["verdict"] == "warn", "the doctor makes none"

    rota("migrate")
    found = doctor(rota, url)
    assert unwell(found) == {"persistence": "warn"}
    assert "fsync off" in found["persistence"]["detail"]
    assert list(found)[:8] == [
        *("server", "latency", "role", "pooler", "hints", "persistence", "schema", "permissions"),
    ]
    assert found["server"]["detail"].startswith("PostgreSQL 18")
    assert {"store", "clock", "writable"} <= found.keys()
    assert re.fullmatch(rf"{namespace}, version \d+, functions \d+", found["schema"]["detail"])

    asyncio.run(sql(postgres, f"UPDATE {namespace}.functions SET number = 0"))
    assert "functions 0, older than" in doctor(rota, url)["schema"]["detail"]


def test_a_postgres_that_does_not_wait_for_its_log_is_warned_about(
    rota: Called, postgres: PostgresServer, namespace: str
) -> None:
    rota.url = in_place(postgres.url, namespace) + "&synchronous_commit=off"
    rota("migrate")
    assert "synchronous_commit off" in doctor(rota, rota.url)["persistence"]["detail"]


def test_missing_grants_are_named_one_by_one(rota: Called, postgres: PostgresServer, namespace: str) -> None:
    url = in_place(postgres.url, namespace).replace("postgresql://rota@", f"postgresql://{namespace}@")
    asyncio.run(sql(postgres, f"CREATE ROLE {namespace} LOGIN"))
    absent = doctor(rota, url, code=1)
    assert absent["schema"]["detail"] == f"{namespace} is not there yet, and {namespace} may not create it"

    rota.url = in_place(postgres.url, namespace)
    rota("migrate")
    assert "may not use schema" in doctor(rota, url, code=1)["permissions"]["detail"]

    grants = re.findall(r"^GRANT .*;$", (LUA.parents[4] / "docs/postgresql.md").read_text(), re.MULTILINE)
    ours = [grant.replace(" rota ", f" {namespace} ").replace("worker;", f"{namespace};") for grant in grants]
    assert len(ours) == 3
    asyncio.run(sql(postgres, *ours, f"REVOKE DELETE ON {namespace}.queue FROM {namespace}"))
    found = doctor(rota, url, code=1)
    assert found["permissions"]["detail"] == f"{namespace} lacks DELETE on queue"
    assert "store" not in found

    asyncio.run(sql(postgres, *ours))
    assert unwell(doctor(rota, url)) == {"persistence": "warn"}


def test_a_schema_of_another_program_or_of_the_future_is_refused(
    rota: Called, postgres: PostgresServer, namespace: str
) -> None:
    rota.url = in_place(postgres.url, namespace)
    asyncio.run(sql(postgres, f"CREATE SCHEMA {namespace}", f"CREATE TABLE {namespace}.theirs ()"))
    assert "some other program" in doctor(rota, rota.url, code=1)["schema"]["detail"]
    asyncio.run(sql(postgres, f"DROP SCHEMA {namespace} CASCADE"))
    rota("migrate")
    asyncio.run(sql(postgres, f"INSERT INTO {namespace}.migrations VALUES (99)"))
    assert "upgrade rota" in doctor(rota, rota.url, code=1)["schema"]["detail"]


@asynccontextmanager
async def pooler(postgres: PostgresServer, folder: Path) -> AsyncGenerator[str]:
    """All that a client sees of a pooler: the number by which to cancel is not that of the server's process."""
    own = re.compile(rb"(K\x00\x00\x00\x0c)....", re.DOTALL)
    served: list[asyncio.Task[None]] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rewrite: bool) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(own.sub(rb"\1~~~~", data, count=1) if rewrite else data)
                rewrite = rewrite and not own.search(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back_reader, back_writer = await asyncio.open_unix_connection(str(postgres.address))
        await asyncio.gather(pass_on(reader, back_writer, False), pass_on(back_reader, writer, True))
        for end in (writer, back_writer):
            with suppress(ConnectionError):
                await end.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_unix_server(accept, str(folder / ".s.PGSQL.5432"))
    async with server:
        yield postgres.url_at(folder / ".s.PGSQL.5432")
        async with asyncio.timeout(10):
            await asyncio.gather(*served)


async def test_a_pooler_in_between_is_noticed_and_listen_url_is_what_to_do(
    postgres: PostgresServer, namespace: str, tmp_path: Path
) -> None:
    async with pooler(postgres, tmp_path) as url:
        pooled = {check.name: check for check in await postgres_checks(PostgresBackend.from_url(url))}
        assert (pooled["pooler"].verdict, pooled["hints"].verdict) == ("warn", "warn")
        assert "listen_url=" in pooled["pooler"].advice
        address = PostgresBackend.from_url(url).address
        by = PostgresBackend(type(address)(address.dsn, namespace, 4, postgres.url, address.shown))
        direct = {check.name: check for check in await postgres_checks(by)}
        assert (direct["pooler"].verdict, direct["hints"].verdict) == ("ok", "ok")
