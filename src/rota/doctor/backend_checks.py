"""All checks of a store: of its file or server first, then of the open store."""

import asyncio
from urllib.parse import urlsplit

from rota.doctor.checks import Check
from rota.doctor.file_checks import file_checks
from rota.doctor.store_checks import store_checks
from rota.store import Backend
from rota.stores import REDIS
from rota.stores.sqlite import SqliteBackend


async def backend_checks(backend: Backend) -> list[Check]:
    """The open store is left out if a check of its place blocks it."""
    found = await _place_checks(backend)
    return found if any(check.blocks for check in found) else [*found, *await store_checks(backend)]


async def _place_checks(backend: Backend) -> list[Check]:
    """Checks of a file or a server that need no open store."""
    if isinstance(backend, SqliteBackend):
        return await asyncio.to_thread(lambda: list(file_checks(backend.path)))
    scheme = urlsplit(backend.url).scheme
    if scheme in REDIS:
        from rota.doctor.redis_checks import redis_checks  # imported here because the driver may not be installed
        from rota.stores.redis import RedisBackend

        if isinstance(backend, RedisBackend):
            return await redis_checks(backend)
    if scheme == "postgresql":
        from rota.doctor.postgres_checks import postgres_checks
        from rota.stores.postgres import PostgresBackend

        if isinstance(backend, PostgresBackend):
            return await postgres_checks(backend)
    return []
