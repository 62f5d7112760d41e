"""A clock that was ahead leaves instants behind that have not come yet: here they are brought back to now."""

import sqlite3

from msgspec import Struct

from rota.domain.run import DIGITS
from rota.stores.sqlite.connection import begin, committed, plain_errors
from rota.stores.sqlite.rows import read_specs
from rota.stores.sqlite.statements import ALL_SPECS

LEASED_AFTER = 600.0
"""Seconds that a lease from the future has left: time enough for its worker to renew it, if that is alive."""

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
    """By how many seconds the store's clock was ahead, and how many runs and leases were brought back."""

    ahead: float
    runs: int
    leases: int


def repair_clock(connection: sqlite3.Connection, path: str, now: float) -> Repaired:
    """Set the store's clock to `now`, in one transaction with what was written by one that was ahead."""
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
    """A bucket that takes longer to fill than an empty one was drawn from in the future.

    A task whose spec cannot be read counts as one without a rate: its bucket is full, rather than empty for too long.
    """
    rates = {spec.name: spec.rate for spec in read_specs(connection.execute(ALL_SPECS).fetchone()[0])}
    for task, key, full_at in connection.execute("SELECT task, key, full_at FROM rates").fetchall():
        rate = rates.get(task)
        if full_at > here + (rate.burst * rate.interval if rate else 0.0):
            connection.execute(FULL, (here, task, key))
