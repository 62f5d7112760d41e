"""`rota migrate`: bring the store's schema up to date."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from rota.cli.options.parameters import Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.store import Backend
from rota.stores.sqlite import SqliteBackend, files
from rota.stores.sqlite.connection import LOCK_PATIENCE, connect, migrate, plain_errors


def migrate_store(*, target: Shared[Target], show: Shared[Show]) -> None:
    """Bring the store's schema up to date; print the version before and after."""
    backend = target.backend()
    before, after = _migrate(backend)
    if show.json:
        show.value({"url": backend.url, "before": before, "after": after})
    elif before is None:
        show.line(f"{backend.url} has no schema: nothing to do")
    elif before == after:
        show.line(f"{backend.url} has schema {after}: up to date")
    else:
        show.line(f"{backend.url} had schema {before}, now has {after}")


def _migrate(backend: Backend) -> tuple[int | None, int | None]:
    if isinstance(backend, SqliteBackend):
        return _migrate_file(backend.path)
    if backend.url.startswith("postgresql:"):
        from rota.stores.postgres import PostgresBackend  # imported here because the driver may not be installed

        if isinstance(backend, PostgresBackend):
            return asyncio.run(backend.migrate())
    return None, None


def _migrate_file(path: str) -> tuple[int, int]:
    files.make(Path(path))
    with (
        plain_errors(path),
        closing(sqlite3.connect(path, timeout=LOCK_PATIENCE, isolation_level=None)) as connection,
    ):
        versions = migrate(connection, path)
    connect(path).close()
    return versions
