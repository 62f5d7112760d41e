"""Checks of how PostgreSQL keeps the tables of a store small: old transactions, dead rows, autovacuum."""

from typing import Any

from rota.doctor.checks import Check, Verdict, good
from rota.domain.text import coarse, one_line
from rota.stores.postgres.driver import Connection

OLD = 60.0
"""Seconds after which an open transaction is named."""
MANY = 100_000
"""Dead rows of one table that are worth a word."""
SHOWN = 80
"""Characters of a query."""

OLDEST = """
SELECT 'pid ' || a.pid AS who, coalesce(a.usename, '?') AS by, a.state, a.query,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS age
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.xact_start IS NOT NULL
  AND coalesce(a.backend_xid, a.backend_xmin) IS NOT NULL
UNION ALL
SELECT 'prepared transaction ' || p.gid, p.owner, 'prepared', '',
       extract(epoch FROM clock_timestamp() - p.prepared)::float8
FROM pg_prepared_xacts p WHERE p.database = current_database()
ORDER BY age DESC LIMIT 1
"""
DEAD = """
SELECT s.relname AS name, s.n_dead_tup AS dead FROM pg_stat_all_tables s
WHERE s.schemaname = $1 AND s.n_dead_tup > 0 ORDER BY s.n_dead_tup DESC LIMIT 5
"""
SLOTS = """
SELECT slot_name::text AS name FROM pg_replication_slots
WHERE NOT active AND coalesce(xmin, catalog_xmin) IS NOT NULL
"""
AUTOVACUUM = """
SELECT current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on' AS works, ARRAY(
    SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname = ANY($2)
      AND (coalesce(c.reloptions::text, '') LIKE '%autovacuum_enabled=false%'
           OR coalesce(c.reloptions::text, '') NOT LIKE '%autovacuum_vacuum_cost_delay=0%') ORDER BY c.relname) AS odd
"""
BUSY = (
    *("queue", "leases", "worker_states", "floors", "running", "schedules", "marks", "rates", "decisions"),
    *("rollups", "counted", "totals"),
)
"""The tables whose rows die often. The migrations give them settings of their own."""


async def upkeep_checks(connection: Connection, schema: str, old: float = OLD) -> list[Check]:
    return [await _oldest(connection, old), await _dead(connection, schema), await _autovacuum(connection, schema)]


async def _oldest(connection: Connection, old: float) -> Check:
    """Name the transaction that VACUUM waits for. It may be of any program that uses the database."""
    found = await connection.fetch(OLDEST)
    idle = [str(row["name"]) for row in await connection.fetch(SLOTS)]
    if found and found[0]["age"] > old:
        advice = "dead rows stay until it ends: end it, or SELECT pg_terminate_backend(pid)"
        return Check("transactions", Verdict.WARN, _described(found[0]), advice)
    if idle:
        detail = f"nobody reads the replication slot {one_line(idle[0])}"
        return Check("transactions", Verdict.WARN, detail, "dead rows stay until it is read or dropped")
    return good("transactions", f"none is older than {coarse(old)}")


def _described(row: Any) -> str:
    query = one_line(str(row["query"]))
    text = f": {query[:SHOWN]}{'…' * (len(query) > SHOWN)}" if query else ""
    return (
        f"{one_line(row['who'])} of user {one_line(row['by'])} is open for {coarse(row['age'])} ({row['state']}){text}"
    )


async def _dead(connection: Connection, schema: str) -> Check:
    rows = [(str(row["name"]), int(row["dead"])) for row in await connection.fetch(DEAD, schema)]
    detail = ", ".join(f"{dead:,} in {name}" for name, dead in rows) or "none"
    if rows and rows[0][1] > MANY:
        return Check(
            "dead rows", Verdict.WARN, detail, "is a transaction or a replication slot old, or autovacuum off?"
        )
    return good("dead rows", detail)


async def _autovacuum(connection: Connection, schema: str) -> Check:
    (row,) = await connection.fetch(AUTOVACUUM, schema, list(BUSY))
    if not row["works"]:
        return Check("autovacuum", Verdict.WARN, "off", "set autovacuum and track_counts to on, or vacuum every minute")
    if row["odd"]:
        named = ", ".join(row["odd"])
        advice = "ALTER TABLE … SET (autovacuum_enabled = true, autovacuum_vacuum_cost_delay = 0)"
        return Check("autovacuum", Verdict.WARN, f"{named} without the settings that rota made", advice)
    return good("autovacuum", f"on, with settings for {len(BUSY)} tables")
