"""Opens the database of a Django project for reading: by URL, or by what its settings say."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from rota.errors import InvalidOptions
from rota.movein.plan import ROWS_LIMIT

SECONDS = 10.0
"""How long a connection or a query may take."""


def read_url(url: str, query: str) -> list[Mapping[str, Any]]:
    """Return the rows of a query of `sqlite:///PATH` or `postgresql://…`."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        return _sqlite(Path(unquote(url.removeprefix("sqlite:///"))), query)
    if scheme in ("postgres", "postgresql"):
        return asyncio.run(_postgres({"dsn": url}, query, url.rpartition("@")[2]))
    raise InvalidOptions(f"{scheme}: an import reads sqlite:///PATH and postgresql://…")


def read_django(settings: object, query: str) -> list[Mapping[str, Any]]:
    """Return the rows of a query of DATABASES["default"]."""
    databases: Any = getattr(settings, "DATABASES", {})
    found: Mapping[str, Any] = databases.get("default", {})
    engine, name = str(found.get("ENGINE", "")), str(found.get("NAME", ""))
    if engine.endswith("sqlite3"):
        return _sqlite(Path(name), query)
    if engine.endswith(("postgresql", "postgis")):
        given = {"user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
        options = {ours: found[theirs] for ours, theirs in given.items() if found.get(theirs)}
        return asyncio.run(_postgres({"database": name, **options}, query, name))
    raise InvalidOptions(f"DATABASES['default'] has the engine {engine!r}; an import reads SQLite and PostgreSQL")


def _sqlite(path: Path, query: str) -> list[Mapping[str, Any]]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=SECONDS)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query).fetchmany(ROWS_LIMIT + 1)]
    except sqlite3.Error as error:
        raise InvalidOptions(f"{path}: {error}") from None


async def _postgres(options: Mapping[str, Any], query: str, where: str) -> list[Mapping[str, Any]]:
    try:
        asyncpg: Any = import_module("asyncpg")
    except ImportError:
        raise InvalidOptions('PostgreSQL needs asyncpg: pip install "rota[postgres]"') from None
    try:
        connection = await asyncpg.connect(**options, timeout=SECONDS)
        try:
            async with connection.transaction(readonly=True):
                return [dict(row) for row in await connection.fetch(f"{query} LIMIT {ROWS_LIMIT + 1}", timeout=SECONDS)]
        finally:
            await connection.close()
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise InvalidOptions(f"{where}: {error or type(error).__name__}") from None
