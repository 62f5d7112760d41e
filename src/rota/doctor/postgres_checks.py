"""Checks of a PostgreSQL: the server, a pooler in between, durability, and the rights of this user."""

import asyncio
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from rota.doctor.checks import Check, Verdict, good, latency
from rota.doctor.postgres_upkeep import upkeep_checks
from rota.errors import RotaError
from rota.stores.postgres import PostgresBackend
from rota.stores.postgres.address import Login
from rota.stores.postgres.driver import ERRORS, Connection, connect_plainly, explain
from rota.stores.postgres.schema import FUNCTIONS, newest, schema_version

OLDEST = 140000
PROOF = 3.0
"""Seconds in which a NOTIFY to oneself has to arrive."""
NAMED = 5
DOCS = "docs/postgresql.md has the grants"

ABOUT = """
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
       current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS replica, pg_backend_pid() AS pid
"""
KEPT = """
SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') ORDER BY name
"""
MAY = """
SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1) AS there,
       coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1), false) AS usage,
       has_database_privilege(current_database(), 'CREATE') AS create, current_user::text AS me
"""
MISSING = """
SELECT privilege || ' on ' || c.relname AS what
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
     unnest(CASE c.relkind WHEN 'S' THEN ARRAY['USAGE', 'SELECT', 'UPDATE']
                           ELSE ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'] END) privilege
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'S')
  AND NOT (c.relname IN ('migrations', 'functions') AND privilege <> 'SELECT')
  AND NOT CASE c.relkind WHEN 'S' THEN has_sequence_privilege(c.oid, privilege)
                         ELSE has_table_privilege(c.oid, privilege) END
UNION ALL
SELECT 'EXECUTE on ' || p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = $1 AND NOT has_function_privilege(p.oid, 'EXECUTE')
ORDER BY what
"""
WHY = {
    "fsync": "a crash of the machine may leave a broken database",
    "full_page_writes": "a crash of the machine may leave a broken database",
    "synchronous_commit": "a crash of the server may lose the latest submits",
}


async def postgres_checks(backend: PostgresBackend) -> list[Check]:
    """Check the server, then a pooler in between, then the schema; nothing is migrated."""
    try:
        async with _connected(backend.address.login) as connection:
            return await _examined(backend, connection)
    except RotaError as error:
        return [_unreachable(error)]
    except ERRORS as error:
        return [_unreachable(explain(error, backend.url))]


def _unreachable(error: RotaError) -> Check:
    return Check("server", Verdict.FAIL, str(error), "is it running, and is the url right? (ROTA_URL)", blocks=True)


async def _examined(backend: PostgresBackend, connection: Connection) -> list[Check]:
    (about,) = await connection.fetch(ABOUT)
    server = _server(backend, about)
    if server.blocks:
        return [server]
    pooled = about["pid"] != connection.get_server_pid()
    return [
        server,
        await latency(lambda: connection.fetch("SELECT 1")),
        _role(bool(about["replica"])),
        _pooler(backend, pooled),
        await _hints(backend, connection, pooled),
        _persistence({row["name"]: row["setting"] for row in await connection.fetch(KEPT)}),
        *await _schema(backend, connection),
    ]


def _server(backend: PostgresBackend, about: Any) -> Check:
    detail = f"PostgreSQL {about['version']} at {backend.url}"
    if about["number"] < OLDEST:
        return Check("server", Verdict.FAIL, detail, "rota needs PostgreSQL 14 or newer", blocks=True)
    if about["encoding"] != "UTF8":
        advice = "rota needs a database in UTF8: create one"
        return Check("server", Verdict.FAIL, f"{detail}, encoded in {about['encoding']}", advice, blocks=True)
    return good("server", detail)


def _role(replica: bool) -> Check:
    if replica:
        return Check("role", Verdict.FAIL, "a standby: it takes no writes", "name the primary in the URL")
    return good("role", "primary")


def _pooler(backend: PostgresBackend, pooled: bool) -> Check:
    if not pooled:
        return good("pooler", "none between")
    detail = "a pooler stands between: verbs go without prepared statements, which is slower"
    if backend.address.listen_dsn:
        return good("pooler", f"{detail}; hints go by listen_url")
    return Check("pooler", Verdict.WARN, detail, "give listen_url=, straight to the server, so that hints arrive")


async def _hints(backend: PostgresBackend, connection: Connection, pooled: bool) -> Check:
    """Send a NOTIFY on a channel of its own, and listen as a store listens for hints."""
    address = backend.address
    if pooled and not address.listen_dsn:
        return Check("hints", Verdict.WARN, "looked for every half to two seconds", "see pooler")
    arrived = asyncio.Event()
    token = uuid.uuid4().hex
    channel = f"{address.channel}.doctor"
    advice = "LISTEN and NOTIFY must reach the server: give listen_url=, straight to it"
    try:
        async with _connected(address.ear or address.login) as ear:
            await ear.add_listener(channel, lambda _c, _p, _n, payload: arrived.set() if payload == token else None)
            await connection.execute("SELECT pg_notify($1, $2)", channel, token)
            async with asyncio.timeout(PROOF):
                await arrived.wait()
    except TimeoutError:
        return Check("hints", Verdict.WARN, f"LISTEN heard nothing within {PROOF:.0f} s", advice)
    except ERRORS as error:
        shown = backend.url if address.listen_dsn is None else "listen_url"
        return Check("hints", Verdict.WARN, str(explain(error, shown)), advice)
    return good("hints", "a NOTIFY to oneself arrived")


def _persistence(settings: dict[str, str]) -> Check:
    detail = ", ".join(f"{name} {value}" for name, value in settings.items())
    off = [name for name, value in settings.items() if value == "off"]
    if off:
        return Check("persistence", Verdict.WARN, f"{detail}: {WHY[off[0]]}", f"set {off[0]} = on")
    return good("persistence", detail)


async def _schema(backend: PostgresBackend, connection: Connection) -> list[Check]:
    """Read the schema without opening the store, because opening migrates it."""
    schema = backend.address.schema
    (may,) = await connection.fetch(MAY, schema)
    if not may["there"]:
        return [_absent(schema, bool(may["create"]), str(may["me"]))]
    if not may["usage"]:
        return [_forbidden(backend, f"{may['me']} may not use schema {schema}")]
    missing = [str(row["what"]) for row in await connection.fetch(MISSING, schema)]
    for unread in ("SELECT on migrations", "SELECT on functions"):
        if unread in missing:
            return [_forbidden(backend, f"{may['me']} lacks {unread}")]
    checks = [await _version(backend, connection)]
    if missing and not checks[0].blocks:
        named = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        checks.append(_forbidden(backend, f"{may['me']} lacks {named}"))
    elif not missing:
        checks.append(good("permissions", f"{may['me']} has all that rota needs in schema {schema}"))
    if not any(check.blocks for check in checks):
        checks += await upkeep_checks(connection, schema)
    return checks


def _absent(schema: str, create: bool, me: str) -> Check:
    detail = f"{schema} is not there yet"
    if create:
        return Check("schema", Verdict.WARN, detail, "the first process makes it, or rota migrate", blocks=True)
    advice = f"GRANT CREATE ON DATABASE … TO {me}, or let its owner run rota migrate"
    return Check("schema", Verdict.FAIL, f"{detail}, and {me} may not create it", advice, blocks=True)


def _forbidden(backend: PostgresBackend, detail: str) -> Check:
    return Check("permissions", Verdict.FAIL, detail, f"grant it on {backend.schema}: {DOCS}", blocks=True)


async def _version(backend: PostgresBackend, connection: Connection) -> Check:
    schema = backend.address.schema
    try:
        found = await schema_version(connection, schema, backend.url)
    except RotaError as error:
        advice = "upgrade rota, or give it a schema of its own (schema=)"
        return Check("schema", Verdict.FAIL, str(error), advice, blocks=True)
    if found.version < newest():
        return Check("schema", Verdict.WARN, f"{found.version}, older than {newest()}", "run rota migrate", blocks=True)
    if found.functions < FUNCTIONS:
        older = f"functions {found.functions}, older than {FUNCTIONS}"
        return Check("schema", Verdict.WARN, older, "run rota migrate", blocks=True)
    return good("schema", f"{schema}, version {found.version}, functions {found.functions}")


@asynccontextmanager
async def _connected(login: Login) -> AsyncGenerator[Connection]:
    connection = await connect_plainly(login)
    try:
        yield connection
    finally:
        connection.terminate()
