"""The schema: numbered migrations, applied by whoever opens the store first."""

from importlib import resources

from rota.errors import SchemaTooNew, StoreCorrupt
from rota.stores.postgres.driver import Connection, quoted

LOCK = 0x726F7461
"""The advisory lock under which one process migrates."""

STANDS = """
SELECT to_regclass($1) IS NOT NULL AS ours,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $2) AS used,
       current_setting('server_encoding') AS encoding, current_setting('server_version_num')::int AS version
"""


def migrations() -> list[str]:
    """The scripts in their order; the n-th brings the schema to version n."""
    folder = resources.files("rota.stores.postgres") / "migrations"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [f.read_text() for f in files]


async def version_of(connection: Connection, schema: str, url: str) -> int:
    """The version that this schema has now; 0 if there is none."""
    (stands,) = await connection.fetch(STANDS, f"{quoted(schema)}.migrations", schema)
    if stands["version"] < 140000:
        raise StoreCorrupt(f"{url} is PostgreSQL {stands['version'] // 10000}; rota needs 14 or newer")
    if stands["encoding"] != "UTF8":
        raise StoreCorrupt(f"{url} is encoded in {stands['encoding']}; rota needs a database in UTF8")
    if not stands["ours"]:
        if stands["used"]:
            raise StoreCorrupt(f"schema {schema} of {url} belongs to some other program; give rota one of its own")
        return 0
    rows = await connection.fetch(f"SELECT max(version) AS version FROM {quoted(schema)}.migrations")
    version = int(rows[0]["version"] or 0)
    if version > len(migrations()):
        raise SchemaTooNew(
            f"schema {schema} of {url} has version {version}, written by a newer rota; "
            f"this one knows up to {len(migrations())}: upgrade rota"
        )
    return version


async def migrate(connection: Connection, schema: str, url: str) -> tuple[int, int]:
    """Bring the schema up to date in one transaction; the version before and after."""
    scripts = migrations()
    async with connection.transaction():  # all of it on one server, whatever stands between
        if await version_of(connection, schema, url) == len(scripts):
            return len(scripts), len(scripts)
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        found = await version_of(connection, schema, url)
        if not found:
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
        await connection.execute(f"SET LOCAL search_path TO {quoted(schema)}, pg_temp")
        if not found:
            await connection.execute("CREATE TABLE migrations (version integer PRIMARY KEY)")
        for version, script in enumerate(scripts[found:], found + 1):
            await connection.execute(script)
            await connection.execute(f"INSERT INTO migrations VALUES ({version})")
    return found, len(scripts)
