"""claim, step by step, inside one write transaction."""

from collections.abc import Sequence

import msgspec

from rota.domain.run import Run, after
from rota.store import OFFER_AGAIN, OFFERS, Claim
from rota.stores.idle import Idle, waiting, wake_for
from rota.stores.sqlite.rows import RUNS, read_runs, to_json
from rota.stores.sqlite.threads import Transaction

EXPIRE_AT_ONCE = 1000

# A lane is one (task, priority) of the due index. Stepping from lane to lane by the index costs a look-up per lane,
# however many runs stand in it; head is the due time of its first run.
LANES = """
WITH RECURSIVE lane (task, priority) AS (
    SELECT known.value, (SELECT max(priority) FROM runs WHERE state = 'queued' AND task = known.value)
    FROM json_each(?) AS known
    UNION ALL
    SELECT lane.task, (SELECT max(priority) FROM runs
                       WHERE state = 'queued' AND task = lane.task AND priority < lane.priority)
    FROM lane WHERE lane.priority IS NOT NULL
)
SELECT json_group_array(json_array(lane.task, lane.priority, (
    SELECT due_at FROM runs WHERE state = 'queued' AND task = lane.task AND priority = lane.priority
    ORDER BY due_at LIMIT 1
))) FROM lane WHERE priority IS NOT NULL
"""

PICK = """
SELECT json_group_array(seq) FROM (
    SELECT picked.seq FROM json_each(:lanes) AS lane CROSS JOIN runs AS picked ON picked.seq IN (
        SELECT seq FROM runs
        WHERE state = 'queued' AND task = lane.value ->> 0 AND priority = lane.value ->> 1 AND due_at <= :now
          AND (expires_at IS NULL OR expires_at > :now)
        ORDER BY due_at, seq LIMIT :free)
    ORDER BY picked.priority DESC, picked.due_at, picked.seq LIMIT :free)
"""

TAKE = """
UPDATE runs SET state = 'running', fence = fence + 1, worker = ?, claim_n = ?, claimed_at = ?, until = ?
WHERE seq IN (SELECT value FROM json_each(?))
"""

TAKEN = f"""
SELECT {RUNS} FROM (
    SELECT * FROM runs WHERE state = 'running' AND worker = ? AND claim_n = ?
    ORDER BY priority DESC, due_at, seq)
"""

EXPIRED = f"""
SELECT json_group_array(id) FROM (
    SELECT id FROM runs WHERE state = 'queued' AND expires_at <= ? ORDER BY expires_at LIMIT {EXPIRE_AT_ONCE})
"""

EXPIRE = """
UPDATE runs SET state = 'cancelled', reason = 'expired', finished_at = ?
WHERE id IN (SELECT value FROM json_each(?))
"""

LAPSED = f"""
SELECT {RUNS} FROM (
    SELECT * FROM runs WHERE state = 'running' AND until <= ?1 AND (offer_at IS NULL OR offer_at <= ?1)
    ORDER BY until LIMIT {OFFERS})
"""

UPCOMING = """
SELECT json_group_array(due_at) FROM (
    SELECT soon.due_at FROM json_each(:lanes) AS lane CROSS JOIN runs AS soon ON soon.seq IN (
        SELECT seq FROM runs
        WHERE state = 'queued' AND task = lane.value ->> 0 AND priority = lane.value ->> 1
        ORDER BY due_at LIMIT :k)
    ORDER BY soon.due_at LIMIT :k)
"""

IDLE = """
SELECT json_group_array(json_array(name, json(tasks), seen_at, wake_at)) FROM workers WHERE idle = 1
"""

REGISTER = """
INSERT INTO workers (name, n, tasks, seen_at, idle, wake_at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    n = excluded.n, tasks = excluded.tasks, seen_at = excluded.seen_at, idle = excluded.idle, wake_at = excluded.wake_at
"""


class _IdleRow(Idle, frozen=True, array_like=True):
    """An Idle as the JSON array above."""


_lanes = msgspec.json.Decoder(list[tuple[str, int, float]])
_idle = msgspec.json.Decoder(list[_IdleRow])


def claim(tx: Transaction, worker: str, n: int, tasks: Sequence[str], free: int, lease: float) -> Claim:
    known = to_json(tasks)
    last = tx.one("SELECT n FROM workers WHERE name = ?", worker) or 0
    if n > last:
        runs = _take(tx, worker, n, known, free, lease)
    else:
        runs = read_runs(tx.one(TAKEN, worker, n))
    idle = len(runs) < free
    wake_at = _wake_at(tx, worker, known, frozenset(tasks)) if idle else None
    tx.execute(REGISTER, worker, max(n, last), known, tx.now, idle, wake_at)
    wake = None if wake_at is None else max(0.0, wake_at - tx.now)
    return Claim(tx.now, runs, _offer_lapsed(tx), wake)


def expire(tx: Transaction) -> list[str]:
    """End queued runs that are too late to start; their ids."""
    found = tx.one(EXPIRED, tx.now)
    if found == "[]":
        return []
    tx.execute(EXPIRE, tx.now, found)
    return msgspec.json.decode(found, type=list[str])


def read_idle(tx: Transaction) -> Sequence[Idle]:
    return _idle.decode(tx.one(IDLE))


def _take(tx: Transaction, worker: str, n: int, known: str, free: int, lease: float) -> list[Run]:
    if free <= 0:
        return []
    due = [lane for lane in _lanes.decode(tx.one(LANES, known)) if lane[2] <= tx.now]
    if not due:
        return []
    picked = tx.connection.execute(PICK, {"lanes": to_json(due), "now": tx.now, "free": free}).fetchone()[0]
    if picked == "[]":
        return []
    tx.execute(TAKE, worker, n, tx.now, after(tx.now, lease), picked)
    return read_runs(tx.one(TAKEN, worker, n))


def _offer_lapsed(tx: Transaction) -> list[Run]:
    first = tx.one("SELECT min(until) FROM runs WHERE state = 'running'")
    if first is None or first > tx.now:
        return []
    lapsed = read_runs(tx.one(LAPSED, tx.now))
    tx.execute(
        "UPDATE runs SET offer_at = ? WHERE id IN (SELECT value FROM json_each(?))",
        after(tx.now, OFFER_AGAIN),
        to_json([run.id for run in lapsed]),
    )
    return lapsed


def _wake_at(tx: Transaction, worker: str, known: str, tasks: frozenset[str]) -> float | None:
    lanes = _lanes.decode(tx.one(LANES, known))
    if not lanes:
        return None
    others = waiting(read_idle(tx), worker, tasks, tx.now)
    if not others:
        return min(head for _, _, head in lanes)
    wanted = {"lanes": to_json(lanes), "k": len(others) + 1}
    upcoming = msgspec.json.decode(tx.connection.execute(UPCOMING, wanted).fetchone()[0], type=list[float])
    return wake_for(others, upcoming)
