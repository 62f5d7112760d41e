"""Aliases: PostgreSQL databases of the project, which exist while a test uses them."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg
from django.db import connections
from django.db.utils import ConnectionHandler

from rota.django.transactions import place


def entry_of(url: str, **changes: Any) -> dict[str, Any]:
    """Return the entry of DATABASES for a `postgresql://` URL."""
    host, port, name, _ = place(url)
    parts = urlsplit(url)
    entry = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": host,
        "PORT": port,
        "USER": parts.username or "",
        "PASSWORD": parts.password or "",
        "NAME": name,
    }
    return {**entry, **changes}


@contextmanager
def alias(name: str, entry: dict[str, Any]) -> Iterator[None]:
    """Until the block ends, DATABASES has `entry` under `name`, also in place of another entry."""
    before = connections.settings.get(name)
    _forget(name)
    connections.settings[name] = ConnectionHandler({"default": entry}).settings["default"]
    try:
        yield
    finally:
        _forget(name)
        connections.settings.pop(name)
        if before is not None:
            connections.settings[name] = before


def _forget(name: str) -> None:
    """Close the connection that this thread has to the database."""
    if name in connections.settings:
        connections[name].close()
        del connections[name]


def counted(url: str, application: str) -> int:
    """Return how many connections the server has that call themselves `application`."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1"
    return int(asked(url, query, application))


def terminated(url: str, application: str) -> int:
    """End the connections that call themselves `application`, as a server does that restarts; return their number."""
    query = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = $1"
    return int(asked(url, query, application))


def asked(url: str, query: str, *args: object) -> Any:
    """Send one query over a connection of its own; return its first value."""

    async def ask() -> Any:
        connection: Any = await asyncpg.connect(url)  # pyright: ignore[reportUnknownMemberType]
        try:
            return await connection.fetchval(query, *args)
        finally:
            await connection.close()

    return asyncio.run(ask())
