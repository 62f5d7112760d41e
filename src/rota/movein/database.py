"""Opens the database of a Django project, by URL or by what its settings say: for one query, or for one change."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from rota.errors import InvalidOptions
from rota.movein.plan import ROWS_LIMIT
from rota.movein.stops import Statement, as_text

T = TypeVar("T")

SECONDS = 10.0
"""How long a connection or a query may take."""


class Database(Struct, frozen=True):
    """SQLite at `path`, else PostgreSQL with the `options` of asyncpg."""

    where: str
    """Its name for messages, without a password."""
    path: Path | None = None
    options: Mapping[str, Any] = {}

    def read(self, query: str) -> list[Mapping[str, Any]]:
        """Return the rows of a query, in a transaction that cannot write."""
        if self.path is not None:
            return _sqlite(self.path, query)
        return asyncio.run(_on_postgres(self.options, self.where, partial(_select, query)))

    def write(self, statements: Sequence[Statement]) -> None:
        """Execute statements in one transaction."""
        if self.path is not None:
            _change_sqlite(self.path, statements)
        else:
            asyncio.run(_on_postgres(self.options, self.where, partial(_execute, statements)))


def by_url(url: str) -> Database:
    """Return the database of `sqlite:///PATH` or `postgresql://…`."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        path = Path(unquote(url.removeprefix("sqlite:///")))
        return Database(str(path), path)
    if scheme in ("postgres", "postgresql"):
        return Database(url.rpartition("@")[2], options={"dsn": url})
    raise InvalidOptions(f"{scheme}: an import reads sqlite:///PATH and postgresql://…")


def of_django(settings: object) -> Database:
    """Return DATABASES["default"]."""
    databases: Any = getattr(settings, "DATABASES", {})
    found: Mapping[str, Any] = databases.get("default", {})
    engine, name = str(found.get("ENGINE", "")), str(found.get("NAME", ""))
    if engine.endswith("sqlite3"):
        return Database(name, Path(name))
    if engine.endswith(("postgresql", "postgis")):
        given = {"user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
        options = {ours: found[theirs] for ours, theirs in given.items() if found.get(theirs)}
        return Database(name, options={"database": name, **options})
    raise InvalidOptions(f"DATABASES['default'] has the engine {engine!r}; an import reads SQLite and PostgreSQL")


def _sqlite(path: Path, query: str) -> list[Mapping[str, Any]]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=SECONDS)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query).fetchmany(ROWS_LIMIT + 1)]
    except sqlite3.Error as error:
        raise InvalidOptions(f"{path}: {error}") from None


def _change_sqlite(path: Path, statements: Sequence[Statement]) -> None:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, timeout=SECONDS)) as connection:
            connection.isolation_level = None
            connection.execute("BEGIN IMMEDIATE")
            for sql, rows in statements:
                connection.executemany(sql, [[as_text(value) for value in row] for row in rows])
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise InvalidOptions(f"{path}: {error}") from None


async def _on_postgres(options: Mapping[str, Any], where: str, use: Callable[[Any], Awaitable[T]]) -> T:
    try:
        asyncpg: Any = import_module("asyncpg")
    except ImportError:
        raise InvalidOptions('PostgreSQL needs asyncpg: pip install "rota[postgres]"') from None
    try:
        connection = await asyncpg.connect(**options, timeout=SECONDS)
        try:
            return await use(connection)
        finally:
            await connection.close()
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise InvalidOptions(f"{where}: {error or type(error).__name__}") from None


async def _select(query: str, connection: Any) -> list[Mapping[str, Any]]:
    async with connection.transaction(readonly=True):
        return [dict(row) for row in await connection.fetch(f"{query} LIMIT {ROWS_LIMIT + 1}", timeout=SECONDS)]


async def _execute(statements: Sequence[Statement], connection: Any) -> None:
    async with connection.transaction():
        for sql, rows in statements:
            await connection.executemany(_numbered(sql), rows, timeout=SECONDS)


def _numbered(sql: str) -> str:
    """Return a statement with `$1`, `$2` … in place of each `?`."""
    parts = sql.split("?")
    return "".join(f"{part}${number}" for number, part in enumerate(parts[:-1], 1)) + parts[-1]
