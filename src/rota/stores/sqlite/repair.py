"""Repair after a clock that was ahead: instants that it wrote and that are still in the future are set to now."""

import sqlite3

from msgspec import Struct

from rota.domain.run import DIGITS
from rota.stores.sqlite.connection import begin, committed, plain_errors
from rota.stores.sqlite.rows import read_specs
from rota.stores.sqlite.statements import ALL_SPECS

LEASED_AFTER = 600.0
"""Seconds until a lease from the future lapses after the repair: enough for a living worker to renew the lease."""

RUNS = """
UPDATE runs SET created_at = :here, due_at = round(due_at - (created_at - :here), 5),
    expires_at = round(expires_at - (created_at - :here), 5)
WHERE state IN ('queued', 'paused') AND created_at > :here
"""
LEASES = """
UPDATE runs SET until = min(until, :here + :leased), claimed_at = min(claimed_at, :here), offer_at = NULL
WHERE state = 'running' AND claimed_at > :here
"""
FULL = "UPDATE rates SET full_at = ?1, opens_at = iif(opens_at IS NULL, NULL, ?1) WHERE task = ?2 AND key = ?3"
OTHERS = (
    "UPDATE clock SET now = :here",
    "UPDATE runs SET offer_at = NULL WHERE state = 'running' AND offer_at > :here",
    "UPDATE workers SET seen_at = :here, wake_at = NULL, idle = 0 WHERE seen_at > :here",
    """UPDATE schedules SET look_at = schedule ->> 'fires_at'
       WHERE iif(json_valid(schedule), look_at > schedule ->> 'fires_at', false)""",
    """UPDATE marks SET succeeded_at = min(succeeded_at, :here), finished_at = min(finished_at, :here)
       WHERE succeeded_at > :here OR finished_at > :here""",
)


class Repaired(Struct, frozen=True):
    """By how many seconds the clock of the store was ahead, and how many runs and leases were changed."""

    ahead: float
    runs: int
    leases: int


def repair_clock(connection: sqlite3.Connection, path: str, now: float) -> Repaired:
    """Set the clock of the store to `now`, and repair all instants in the same transaction."""
    here = round(now, DIGITS)
    with plain_errors(path):
        begin(connection, path)
        with committed(connection):
            latest = float(connection.execute("SELECT now FROM clock").fetchone()[0])
            runs = connection.execute(RUNS, {"here": here}).rowcount
            leases = connection.execute(LEASES, {"here": here, "leased": LEASED_AFTER}).rowcount
            for statement in OTHERS:
                connection.execute(statement, {"here": here})
            _fill_buckets(connection, here)
    return Repaired(max(0.0, latest - here), runs, leases)


def _fill_buckets(connection: sqlite3.Connection, here: float) -> None:
    """Fill the buckets of rates that would take longer to fill than an empty bucket: their state is from the future.

    A task whose spec cannot be read counts as a task without a rate: a bucket filled too early does less harm than one
    that stays empty for too long.
    """
    rates = {spec.name: spec.rate for spec in read_specs(connection.execute(ALL_SPECS).fetchone()[0])}
    for task, key, full_at in connection.execute("SELECT task, key, full_at FROM rates").fetchall():
        rate = rates.get(task)
        if full_at > here + (rate.burst * rate.interval if rate else 0.0):
            connection.execute(FULL, (here, task, key))
