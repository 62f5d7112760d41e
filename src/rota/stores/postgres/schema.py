"""The schema: numbered migrations and the functions. The first process that opens the store installs them."""

import hashlib
import logging
import re
from functools import cache
from importlib import resources

from msgspec import Struct

from rota.errors import SchemaTooNew, StoreCorrupt
from rota.stores.postgres.driver import Connection, quoted
from rota.stores.postgres.words import written_out

log = logging.getLogger("rota")

VIEWS = "views.sql"
"""The file in `functions` with the views. A migration replaces the views: they change only when columns change."""
FUNCTIONS = 12
"""Grows with every change of a file in `functions`: a process with an older number does not replace newer functions."""
FIRST_SCHEMA = "fans"
"""A table of the first schema that is kept. Unreleased versions of rota made schemas of version 1 without it."""
LOCK = 0x726F7461
"""The advisory lock under which one process migrates."""

SCHEMA_STATE = """
SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL AS ours,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $3) AS used,
       to_regclass($4) IS NOT NULL AS whole,
       current_setting('server_encoding') AS encoding, current_setting('server_version_num')::int AS version
"""
VERSIONS = """
SELECT first, version, number AS functions, digest
FROM {schema}.functions, (SELECT min(version) AS first, max(version) AS version FROM {schema}.migrations) AS made
"""
MISSING = """
SELECT to_regclass($1) IS NULL OR $2 <> '' AND NOT EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attname = $2 AND NOT a.attisdropped) AS missing
"""
DROPS = """
SELECT format('DROP FUNCTION %s', p.oid::regprocedure) AS command
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = current_schema() AND p.proname = ANY($1) AND p.prorettype <> 'trigger'::regtype
"""


class SchemaVersion(Struct, frozen=True):
    """The number of the last migration of a schema, and the number of its functions; 0 for none."""

    version: int = 0
    functions: int = 0
    digest: str = ""

    @property
    def is_current(self) -> bool:
        return self.version == newest() and self.functions >= FUNCTIONS


@cache
def migrations() -> dict[int, str]:
    """The scripts in their order. A script brings the schema to the version of its number."""
    return {int(name[:4]): text for name, text in _scripts("migrations").items()}


def newest() -> int:
    return max(migrations())


@cache
def functions() -> str:
    """All functions, with each `{word}` written out: see `words`."""
    scripts = _scripts("functions")
    return written_out("\n".join(text for name, text in scripts.items() if name != VIEWS))


def views() -> str:
    return written_out(_scripts("functions")[VIEWS])


def digest() -> str:
    return hashlib.sha256(functions().encode()).hexdigest()


def _scripts(folder: str) -> dict[str, str]:
    files = (resources.files("rota.stores.postgres") / folder).iterdir()
    return {file.name: file.read_text() for file in sorted(files, key=lambda file: file.name)}


async def schema_version(connection: Connection, schema: str, url: str) -> SchemaVersion:
    """The version of this schema. Raises for a schema of a newer version, and for a schema from before the first
    release: its migrations had other numbers, none of them 1, or its first one made no table FIRST_SCHEMA."""
    (state,) = await connection.fetch(
        SCHEMA_STATE,
        f"{quoted(schema)}.migrations",
        f"{quoted(schema)}.functions",
        schema,
        f"{quoted(schema)}.{FIRST_SCHEMA}",
    )
    if state["version"] < 140000:
        raise StoreCorrupt(f"{url} is PostgreSQL {state['version'] // 10000}; rota needs 14 or newer")
    if state["encoding"] != "UTF8":
        raise StoreCorrupt(f"{url} is encoded in {state['encoding']}; rota needs a database in UTF8")
    if not state["ours"]:
        if state["used"]:
            raise StoreCorrupt(f"schema {schema} of {url} belongs to some other program; give rota one of its own")
        return SchemaVersion()
    (row,) = await connection.fetch(VERSIONS.replace("{schema}", quoted(schema)))
    if row["first"] != 1 or not state["whole"]:
        raise StoreCorrupt(
            f"schema {schema} of {url} was made by an unreleased version of rota; "
            "drop it, or give rota another one (schema=)"
        )
    version = SchemaVersion(row["version"], row["functions"], row["digest"])
    if version.version > newest():
        raise SchemaTooNew(
            f"schema {schema} of {url} has version {version.version}, written by a newer rota; "
            f"this one knows up to {newest()}: upgrade rota"
        )
    return version


async def migrate(connection: Connection, schema: str, url: str) -> tuple[int, int]:
    """Bring the schema up to date in one transaction. Returns its version before and after."""
    async with connection.transaction():  # so that a pooler uses one server connection
        found = await schema_version(connection, schema, url)
        if found.is_current:
            _compare(found, url)
            return found.version, found.version
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        found = await schema_version(connection, schema, url)
        if not found.version:
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
        await connection.execute(f"SET LOCAL search_path TO {quoted(schema)}, pg_temp")
        if not found.version:
            await connection.execute("CREATE TABLE migrations (version integer PRIMARY KEY)")
        for version, script in migrations().items():
            if version > found.version:
                await connection.execute(script)
                await connection.execute(f"INSERT INTO migrations VALUES ({version})")
        if found.version < newest():  # to replace a view waits for all verbs, and all verbs wait for it
            await connection.execute(views())
        if found.functions < FUNCTIONS:
            await _add_tables(connection)
            await _replace_functions(connection)
    return found.version, newest()


async def _add_tables(connection: Connection) -> None:
    """Make the tables and columns that earlier versions neither know nor miss: they leave the version of the schema as
    it is, so that earlier versions still open it. A script has the name of its last table, or of its table and last
    column, and comes with new functions."""
    for name, script in _scripts("additions").items():
        table, _, column = name.removesuffix(".sql").partition(".")
        (row,) = await connection.fetch(MISSING, table, column)
        if row["missing"]:
            await connection.execute(script)


async def _replace_functions(connection: Connection) -> None:
    """Install the functions. A function whose parameters or result have changed is dropped first: PostgreSQL would
    refuse to replace it, or would keep both. Race: the others are not dropped, because a verb that runs needs them."""
    heads = re.findall(r"^CREATE OR REPLACE FUNCTION (.*?) AS \$\$$", functions(), re.MULTILINE | re.DOTALL)
    (made,) = await connection.fetch("SELECT heads FROM functions")
    changed = [head.partition("(")[0] for head in set(made["heads"]).difference(heads)]
    for row in await connection.fetch(DROPS, changed):
        await connection.execute(row["command"])
    await connection.execute("SET LOCAL check_function_bodies = off")  # they may call functions further below
    await connection.execute(functions())
    await connection.execute("UPDATE functions SET number = $1, digest = $2, heads = $3", FUNCTIONS, digest(), heads)


def _compare(found: SchemaVersion, url: str) -> None:
    if found.functions == FUNCTIONS and found.digest != digest():
        log.warning("%s has other functions of the same number, %s; those there are used", url, FUNCTIONS)
