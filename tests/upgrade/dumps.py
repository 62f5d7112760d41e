"""Stores as text: `python -m tests.upgrade.dumps` writes those of today's version anew."""

import asyncio
import base64
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import redis

from rota.store import Backend
from rota.stores.postgres import PostgresBackend
from rota.stores.postgres.schema import migrations, newest, views
from rota.stores.redis import RedisBackend
from rota.stores.sqlite import SqliteBackend
from storekit.contract import Stage
from storekit.servers import PostgresServer, RedisServer, postgres_of_wheel, valkey_of_wheel
from tests.upgrade.old_store import fill

FOLDER = Path(__file__).parent
REDIS = FOLDER / "redis_1.json"
CODED = "base64:"
NOT_DUMPED = ("migrations", "functions", "listeners")


# -- Redis: every key without its namespace, its type, and what it holds -----------------------------------------------


def redis_dump(client: Any, root: str) -> str:
    found = sorted(client.scan_iter(f"{root}*", count=1000))
    lines = [json.dumps([_text(key.removeprefix(root.encode())), *_held(client, key)]) for key in found]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _held(client: Any, key: bytes) -> tuple[str, Any]:
    kind = client.type(key).decode()
    match kind:
        case "string":
            return kind, _text(client.get(key))
        case "hash":
            return kind, sorted([_text(name), _text(value)] for name, value in client.hgetall(key).items())
        case "zset":
            return kind, [[_text(name), repr(score)] for name, score in client.zrange(key, 0, -1, withscores=True)]
        case "set":
            return kind, sorted(_text(name) for name in client.smembers(key))
        case _:
            raise NotImplementedError(f"a {kind} at {key!r}")


def redis_load(client: Any, root: str, dump: str) -> None:
    for name, kind, held in json.loads(dump):
        key = root.encode() + _bytes(name)
        match kind:
            case "string":
                client.set(key, _bytes(held))
            case "hash":
                client.hset(key, mapping={_bytes(field): _bytes(value) for field, value in held})
            case "zset":
                client.zadd(key, {_bytes(member): float(score) for member, score in held})
            case "set":
                client.sadd(key, *map(_bytes, held))


def _text(value: bytes) -> str:
    """As it is where that can be read, else in base64."""
    text = value.decode(errors="replace")
    is_plain = text.isprintable() and text.encode() == value and not text.startswith(CODED)
    return text if is_plain else CODED + base64.b64encode(value).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.removeprefix(CODED)) if text.startswith(CODED) else text.encode()


# -- PostgreSQL: rows as they stood under a version of the schema; its migrations, once released, are never edited -----


async def postgres_dump(connection: asyncpg.Connection, schema: str) -> str:
    tables = await connection.fetch(
        "SELECT table_name, array_agg(column_name::text ORDER BY ordinal_position) AS columns"
        " FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)"
        " WHERE table_schema = $1 AND table_type = 'BASE TABLE' AND table_name <> ALL ($2)"
        " GROUP BY table_name ORDER BY table_name",
        schema,
        NOT_DUMPED,
    )
    lines: list[str] = []
    for table, columns in tables:
        texts = ", ".join(f"quote_nullable({column}::text)" for column in columns)
        rows = await connection.fetch(f"SELECT {texts} FROM {schema}.{table} ORDER BY 1")
        lines += [f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(row)});" for row in rows]
    for sequence in ("arrivals", "clock"):
        last = await connection.fetchval(f"SELECT last_value FROM {schema}.{sequence}")
        lines.append(f"SELECT setval('{sequence}', {last});")
    return "\n".join([*lines, ""])


async def postgres_load(connection: asyncpg.Connection, schema: str, version: int, dump: str) -> None:
    async with connection.transaction():
        await connection.execute(f"CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}, pg_temp")
        await connection.execute("CREATE TABLE migrations (version integer PRIMARY KEY)")
        for number, script in migrations().items():
            if number <= version:
                await connection.execute(script)
                await connection.execute(f"INSERT INTO migrations VALUES ({number})")
        if version == newest():  # else the next migration makes them
            await connection.execute(views())
        await connection.execute(dump)


# -- SQLite: the whole file, its schema with it ------------------------------------------------------------------------


def sqlite_dump(path: Path) -> tuple[int, str]:
    """The version of the file's schema, and the file as a script."""
    with closing(sqlite3.connect(path)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        pragmas = [f"PRAGMA user_version = {version};", f"PRAGMA application_id = {owner};", ""]
        return version, "\n".join([*connection.iterdump(), *pragmas])


def sqlite_load(path: Path, dump: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(dump)


# -- today's -----------------------------------------------------------------------------------------------------------


async def filled(backend: Backend) -> None:
    async with backend.open() as store:
        await fill(Stage(backend, store))


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rota.db"
        await filled(SqliteBackend(path))
        version, dump = sqlite_dump(path)
        (FOLDER / f"sqlite_{version}.sql").write_text(dump)
    with RedisServer(valkey_of_wheel()) as valkey:
        backend = RedisBackend.from_url(valkey.url)
        await filled(backend)
        REDIS.write_text(redis_dump(redis.Redis.from_url(valkey.url), backend.address.root))
    with PostgresServer(postgres_of_wheel()) as postgres:
        await filled(PostgresBackend.from_url(postgres.url))
        connection = await asyncpg.connect(postgres.url)
        (FOLDER / f"postgres_{newest()}.sql").write_text(await postgres_dump(connection, "rota"))
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
