"""`rota migrate`: bring the store's schema up to date."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.store import Backend
from rota.stores.sqlite import SqliteBackend, files
from rota.stores.sqlite.connection import LOCK_PATIENCE, connect, migrate, plain_errors, planned


def migrate_store(
    *,
    plan: Annotated[bool, Flag, Parameter(help="Only say what would change.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Bring the store's schema up to date; print the version before and after.

    Workers of the release before go on meanwhile. A release that has migrated keeps older ones from opening the store
    anew: --plan says whether this one will.
    """
    backend = target.backend()
    if plan:
        _show_plan(backend, show)
        return
    before, after = _migrate(backend)
    if show.json:
        show.value({"url": backend.url, "before": before, "after": after})
    elif before is None:
        show.line(f"{backend.url} has no schema: nothing to do")
    elif before == after:
        show.line(f"{backend.url} has schema {after}: up to date")
    else:
        show.line(f"{backend.url} had schema {before}, now has {after}")


def _show_plan(backend: Backend, show: Show) -> None:
    before, after, functions = _planned(backend)
    if show.json:
        show.value({"url": backend.url, "before": before, "after": after, "functions": functions})
    elif before is None:
        show.line(f"{backend.url} has no schema: nothing to do")
    elif before == after:
        show.line(f"{backend.url} has schema {after}: nothing would change in its tables")
    elif before == 0:
        show.line(f"{backend.url} has no schema yet: schema {after} would be made")
    else:
        show.line(f"{backend.url} has schema {before}: it would become {after}, which an older rota does not open")
    if functions and not show.json:
        show.line("functions would be installed, beside those that an older rota calls")


def _planned(backend: Backend) -> tuple[int | None, int | None, bool]:
    """Return the schema before and after, and whether functions would be installed."""
    if isinstance(backend, SqliteBackend):
        return *planned(backend.path), False
    if backend.url.startswith("postgresql:"):
        from rota.stores.postgres import PostgresBackend  # imported here because the driver may not be installed

        if isinstance(backend, PostgresBackend):
            return asyncio.run(backend.planned())
    return None, None, False


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
