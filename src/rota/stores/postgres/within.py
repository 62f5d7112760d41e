"""Transactional submit: put a run in the transaction of the caller, with the driver of the caller.

A driver is recognized by the module of its connection class, so no driver is imported that the caller does not use.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun
from rota.errors import InvalidOptions
from rota.stores.postgres.columns import as_payload

if TYPE_CHECKING:
    from rota.stores.postgres.backend import PostgresBackend

_answers = msgspec.json.Decoder(list[tuple[str, Reason]])


async def put_within(connection: Any, backend: "PostgresBackend", run: NewRun) -> Decision:
    """`connection`: of asyncpg, a psycopg AsyncConnection, or SQLAlchemy's AsyncConnection or AsyncSession."""
    payload = as_payload([run])
    match _driver(connection):
        case "asyncpg", _:
            found = await connection.fetchval(_sql(backend, "$1"), payload)
        case "psycopg", True:
            found = _only(await (await connection.execute(_sql(backend, "%s"), (payload,))).fetchone())
        case "sqlalchemy", True:
            found = (await connection.execute(_text(_sql(backend, ":payload")), {"payload": payload})).scalar_one()
        case _:
            raise InvalidOptions(
                f"connection={type(connection).__module__}.{type(connection).__qualname__}: submit takes an asyncpg "
                "connection, a psycopg AsyncConnection or SQLAlchemy's AsyncConnection or AsyncSession; "
                "for synchronous ones there is submit_sync"
            )
    return _decision(found)


def put_within_sync(connection: Any, backend: "PostgresBackend", run: NewRun) -> Decision:
    """`connection`: of psycopg, of Django (`django.db.connection`), or SQLAlchemy's Connection or Session. It needs no
    event loop."""
    payload = as_payload([run])
    match _driver(connection):
        case "psycopg", False:
            found = _only(connection.execute(_sql(backend, "%s"), (payload,)).fetchone())
        case "sqlalchemy", False:
            found = connection.execute(_text(_sql(backend, ":payload")), {"payload": payload}).scalar_one()
        case "django", _:
            with connection.cursor() as cursor:
                cursor.execute(_sql(backend, "%s"), [payload])
                found = _only(cursor.fetchone())
        case _:
            raise InvalidOptions(
                f"connection={type(connection).__module__}.{type(connection).__qualname__}: submit_sync takes a "
                "psycopg connection, one of Django's, or SQLAlchemy's Connection or Session; for asynchronous ones "
                "there is submit"
            )
    return _decision(found)


def _sql(backend: "PostgresBackend", payload: str) -> str:
    """The call of `submit`. `skew` is 0 except in tests."""
    clock = f", {backend.skew!r}, {backend.seen!r}" if backend.skew else ""
    schema = backend.schema.replace("%", "%%") if payload == "%s" else backend.schema
    return f"SELECT {schema}.submit(CAST({payload} AS text){clock}) AS answer"


def _driver(connection: Any) -> tuple[str, bool]:
    """The driver, and whether it is asynchronous. The caller may use a subclass of the driver's connection."""
    for cls in type(connection).__mro__:
        package = cls.__module__.partition(".")[0]
        if package in ("asyncpg", "django", "psycopg", "sqlalchemy"):
            return package, cls.__name__.startswith(("Async", "async")) or package == "asyncpg"
    return "", False


def _text(sql: str) -> Any:
    from sqlalchemy import text

    return text(sql)


def _only(row: Any) -> Any:
    """The only column of a row, which may be a mapping or a tuple."""
    return row["answer"] if hasattr(row, "keys") else row[0]


def _decision(found: str) -> Decision:
    ((run, reason),) = _answers.decode(found)
    return Decision(run, reason)
