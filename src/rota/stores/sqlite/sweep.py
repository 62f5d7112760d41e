"""sweep: delete ended runs, and workers, marks, decisions, schedules, rates and stats that are too old."""

import math
from collections.abc import Sequence

import msgspec

from rota.domain.spec import TaskSpec
from rota.store import ID_MEMORY, OTHER, OWN_ID_MEMORY, SLOTS_KEPT, TOTAL_MEMORY, Retention
from rota.stores.bounds import LEDGER
from rota.stores.retention import MARK_MEMORY, WORKER_MEMORY, mark_memory, over
from rota.stores.sqlite import events
from rota.stores.sqlite.rows import read_schedules, read_specs
from rota.stores.sqlite.statements import ALL_SPECS, COUNT_TOTAL
from rota.stores.sqlite.threads import Transaction

ENDED_TASKS = """
WITH RECURSIVE ended (task) AS (
    SELECT min(task) FROM runs WHERE finished_at IS NOT NULL
    UNION ALL
    SELECT (SELECT min(task) FROM runs WHERE finished_at IS NOT NULL AND task > ended.task)
    FROM ended WHERE ended.task IS NOT NULL
)
SELECT json_group_array(task) FROM ended WHERE task IS NOT NULL
"""

# The newest ended run of a task that is beyond the number to keep. Runs that were settled together ended at the same
# instant: the order of arrival decides among them.
SURPLUS = """
SELECT json_array(finished_at, seq) FROM runs WHERE task = ? AND finished_at IS NOT NULL
ORDER BY finished_at DESC, seq DESC LIMIT 1 OFFSET ?
"""

# Of a store that has fans: the children of a fan stay, as long as the fan is there.
KEPT = """
    NOT (id GLOB '*.*' AND EXISTS (SELECT 1 FROM fans WHERE fans.id = rtrim(rtrim(runs.id, '0123456789'), '.')))
"""
OLD = """
    SELECT seq FROM runs
    WHERE task = :task AND finished_at <= :memory AND (
        (finished_at, seq) <= (:beyond_most ->> 0, :beyond_most ->> 1)
        OR ((finished_at, seq) <= (:beyond_least ->> 0, :beyond_least ->> 1)
            AND finished_at <= iif(state = 'succeeded', :succeeded, :failed)))
        AND {kept}
    ORDER BY finished_at LIMIT :at_once
"""
FORGET = f"DELETE FROM runs WHERE seq IN ({OLD})"

# What stays of the runs that FORGET deletes, if their submitters gave the ids.
STUB = f"""
UPDATE ids SET state = r.state, ended_at = r.finished_at FROM runs r WHERE r.id = ids.id AND r.seq IN ({OLD})
"""


OVER = """
SELECT json_group_array(json_array(id, schedule)) FROM (
    SELECT id, schedule FROM schedules
    WHERE look_at IS NULL AND iif(json_valid(schedule), schedule ->> '$.next_at' IS NULL, false) LIMIT ?)
"""


# The fans whose gather has ended. The gather of a new fan may not be there yet.
OVER_FANS = """
DELETE FROM fans WHERE coalesce((SELECT finished_at IS NOT NULL FROM runs WHERE runs.id = fans.id || '.all'),
                                created_at <= ?)
"""


IDLE_TURNS = """
DELETE FROM turns WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.task = turns.task AND state = 'queued' AND hold = 0)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.task = turns.task AND state = 'queued' AND hold = 1)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.task = turns.task AND state = 'queued' AND hold = 2)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.task = turns.task AND state = 'paused')
"""
"""The turns of tasks that have no waiting runs."""


def forget(tx: Transaction, retention: Retention) -> tuple[int, bool]:
    """Delete what `retention` no longer keeps. Return how many runs were deleted, and whether more are left."""
    tx.execute("DELETE FROM workers WHERE seen_at <= ?", tx.now - WORKER_MEMORY)
    tx.execute(IDLE_TURNS)
    specs = read_specs(tx.one(ALL_SPECS))
    _forget_marks(tx, specs)
    tx.execute("DELETE FROM decisions WHERE last_at <= ?", tx.now - MARK_MEMORY)
    _forget_schedules(tx)
    tx.execute("DELETE FROM rates WHERE full_at <= ? AND opens_at IS NULL", tx.now)
    tx.execute(OVER_FANS, tx.now - ID_MEMORY)
    tx.execute("DELETE FROM ids WHERE ended_at <= ?", tx.now - OWN_ID_MEMORY)
    for every, most in SLOTS_KEPT.items():
        tx.execute("DELETE FROM rollups WHERE every = ? AND minute <= ?", every, int(tx.now // 60) - most)
    _forget_totals(tx)
    keeps = {spec.name: spec.keep for spec in specs if spec.keep is not None}
    forgotten, more = 0, events.forget(tx)
    for task in msgspec.json.decode(tx.one(ENDED_TASKS), type=list[str]):
        forgotten += _forget(tx, task, keeps.get(task, retention), LEDGER.forgotten - forgotten)
        if forgotten >= LEDGER.forgotten:
            return forgotten, True
    tx.execute("DELETE FROM waits WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = waits.run)")
    return forgotten, more


def _forget_marks(tx: Transaction, specs: Sequence[TaskSpec]) -> None:
    """Delete old marks. The marks of a task whose spec cannot be read are kept: the spec may need them longer."""
    names = msgspec.json.decode(tx.one("SELECT json_group_array(name) FROM specs"), type=list[str])
    longer = dict.fromkeys(set(names).difference(spec.name for spec in specs), math.inf)
    longer |= {spec.name: keep for spec in specs if (keep := mark_memory(spec)) > MARK_MEMORY}
    usual = "DELETE FROM marks WHERE finished_at <= ? AND task NOT IN (SELECT value FROM json_each(?))"
    tx.execute(usual, tx.now - MARK_MEMORY, msgspec.json.encode(list(longer)).decode())
    for task, keep in longer.items():
        if keep < math.inf:
            tx.execute("DELETE FROM marks WHERE task = ? AND finished_at <= ?", task, tx.now - keep)


def _forget_totals(tx: Transaction) -> None:
    """Add what workers have not reported for long to OTHER."""
    query = "DELETE FROM totals WHERE at <= ? RETURNING what, ?, reason, count, NULL"
    tx.executemany(COUNT_TOTAL, tx.connection.execute(query, [tx.now - TOTAL_MEMORY, OTHER]).fetchall())


def _forget_schedules(tx: Transaction) -> None:
    found = read_schedules(tx.one(OVER, LEDGER.forgotten))
    gone = [(id,) for id, schedule in found if schedule is not None and over(schedule, tx.now - MARK_MEMORY)]
    tx.executemany("DELETE FROM schedules WHERE id = ?", gone)


def _forget(tx: Transaction, task: str, retention: Retention, most: int) -> int:
    never = "[-1, -1]"
    cut = {
        "task": task,
        "memory": tx.now - ID_MEMORY,
        "beyond_most": tx.one(SURPLUS, task, retention.most) or never,
        "beyond_least": tx.one(SURPLUS, task, retention.least) or never,
        "succeeded": tx.now - retention.succeeded,
        "failed": tx.now - retention.failed,
        "at_once": most,
    }
    kept = KEPT if tx.one("SELECT EXISTS (SELECT 1 FROM fans)") else "true"
    if tx.one("SELECT EXISTS (SELECT 1 FROM ids)"):
        tx.connection.execute(STUB.format(kept=kept), cut)
    return tx.connection.execute(FORGET.format(kept=kept), cut).rowcount
