"""The SQL of SqliteBook. A batch is one JSON array, which json_each reads."""

from rota.store import DUE_SCHEDULES, OFFERS, What
from rota.stores.bounds import LEDGER
from rota.stores.sqlite.rows import HEADS, RUNS, Values

TOUCH = "UPDATE runs SET priority = ?, touches = touches + 1, touched_at = ? WHERE id = ?"

REPRIORITIZE = "UPDATE runs SET priority = ? WHERE id = ?"

REWRITE = "UPDATE runs SET body = ?1, saved = NULL WHERE id = ?2 AND body <> ?1"

SAME_WORK = "SELECT one.body = other.body FROM runs AS one, runs AS other WHERE one.id = ? AND other.id = ?"

HEADS_OF = f"SELECT {HEADS} FROM runs WHERE id IN (SELECT value FROM json_each(?))"

HOLDERS = f"""
SELECT {HEADS} FROM runs
WHERE task = ? AND unique_key = ? AND unique_key IS NOT NULL AND state IN ('queued', 'running', 'paused')
"""

# The holders of many (task, unique_key): each pair is one look-up in the index.
HOLDERS_OF = f"""
SELECT {HEADS} FROM (
    SELECT runs.* FROM json_each(?) AS name CROSS JOIN runs
    ON runs.task = name.value ->> 0 AND unique_key = name.value ->> 1 AND unique_key IS NOT NULL
        AND state IN ('queued', 'running', 'paused'))
"""

WAITERS = f"""
SELECT {HEADS} FROM runs
WHERE id IN (SELECT run FROM waits WHERE ended IN (SELECT value FROM json_each(?)))
"""

GROUPED = f"SELECT {HEADS} FROM (SELECT * FROM runs WHERE grp = ? ORDER BY seq)"

COUNTED_OF = "SELECT json_group_array(limit_row) FROM counted WHERE run = ?"

PENDING = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM runs WHERE state = 'queued' AND hold = 0 AND task = ?1 LIMIT ?2))
     + (SELECT count(*) FROM (SELECT 1 FROM runs WHERE state = 'queued' AND hold = 1 AND task = ?1 LIMIT ?2))
"""

# The best parked run of a key in each queue: one look-up in the index per queue.
BEST_PARKED = f"""
WITH RECURSIVE best (seq) AS (
    SELECT (SELECT seq FROM runs WHERE state = 'queued' AND hold = 1 AND task = ?1 AND key = ?2
            ORDER BY queue DESC, priority DESC, due_at, seq LIMIT 1)
    UNION ALL
    SELECT (SELECT runs.seq FROM runs WHERE state = 'queued' AND hold = 1 AND task = ?1 AND key = ?2
            AND queue < before.queue ORDER BY queue DESC, priority DESC, due_at, seq LIMIT 1)
    FROM best JOIN runs AS before ON before.seq = best.seq
)
SELECT {HEADS} FROM runs WHERE seq IN (SELECT seq FROM best WHERE seq IS NOT NULL)
"""

OF_TASK = f"""
SELECT {HEADS} FROM (
    SELECT * FROM runs WHERE state = 'queued' AND hold = 0 AND task = ?1
    UNION ALL SELECT * FROM runs WHERE state = 'queued' AND hold = 1 AND task = ?1
    UNION ALL SELECT * FROM runs WHERE state = 'queued' AND hold = 2 AND task = ?1
    UNION ALL SELECT * FROM runs WHERE state = 'paused' AND task = ?1
    LIMIT ?2)
"""

FIRST_EXPIRY = "SELECT min(expires_at) FROM runs WHERE state = 'queued' AND expires_at IS NOT NULL"

EXPIRED = f"""
SELECT {HEADS} FROM (
    SELECT * FROM runs WHERE state = 'queued' AND expires_at <= ? ORDER BY expires_at LIMIT {LEDGER.expired})
"""

# A lane is one (task, queue, priority) of the due index, and one more if it has runs with a share: those of all shares.
# Its head is its first run. The recursion takes one to three look-ups in the index per lane, however many runs and
# shares the lane has: the runs without a share, else the next priority, else the next queue. A comparison of row values
# would not do: SQLite begins at the equal rows, which are the whole lane.
LANES = """
WITH RECURSIVE lane (seq) AS (
    SELECT (SELECT seq FROM runs WHERE state = 'queued' AND hold = 0 AND task = known.value
            ORDER BY queue DESC, priority DESC, share DESC, due_at, seq LIMIT 1)
    FROM json_each(?1) AS known
    UNION ALL
    SELECT coalesce(
        (SELECT seq FROM runs WHERE state = 'queued' AND hold = 0 AND task = head.task AND queue = head.queue
            AND priority = head.priority AND share = '' AND head.share <> '' ORDER BY due_at, seq LIMIT 1),
        (SELECT seq FROM runs WHERE state = 'queued' AND hold = 0 AND task = head.task AND queue = head.queue
            AND priority < head.priority ORDER BY priority DESC, share DESC, due_at, seq LIMIT 1),
        (SELECT seq FROM runs WHERE state = 'queued' AND hold = 0 AND task = head.task AND queue < head.queue
            ORDER BY queue DESC, priority DESC, share DESC, due_at, seq LIMIT 1))
    FROM lane JOIN runs AS head ON head.seq = lane.seq
)
SELECT json_group_array(json_array(head.task, head.priority,
    CASE WHEN head.share = '' THEN head.due_at ELSE (
        SELECT due_at FROM runs INDEXED BY runs_shared
        WHERE state = 'queued' AND hold = 0 AND share <> '' AND task = head.task AND queue = head.queue
          AND priority = head.priority ORDER BY due_at LIMIT 1) END,
    head.queue, '', json(CASE WHEN head.share = '' THEN 'false' ELSE 'true' END)))
FROM lane JOIN runs AS head ON head.seq = lane.seq
WHERE ?2 = '[]' OR head.queue IN (SELECT value FROM json_each(?2))
"""

# The first share behind ?5 that has a due run. A share whose runs are all due later takes two look-ups.
NEXT_SHARE = """
WITH RECURSIVE found (share, due) AS (
    SELECT ?5, 0
    UNION ALL
    SELECT next.share, EXISTS (
        SELECT 1 FROM runs WHERE state = 'queued' AND hold = 0 AND task = ?1 AND queue = ?2 AND priority = ?3
        AND share = next.share AND due_at <= ?4)
    FROM found JOIN runs AS next ON next.seq = (
        SELECT seq FROM runs WHERE state = 'queued' AND hold = 0 AND task = ?1 AND queue = ?2 AND priority = ?3
        AND share > found.share ORDER BY share LIMIT 1)
    WHERE NOT found.due
)
SELECT share FROM found WHERE due
"""

PICK = """
SELECT json_group_array(json_array(-priority, due_at, seq, id, task, key, losses, queue, share)) FROM (
    SELECT picked.* FROM json_each(:lanes) AS lane CROSS JOIN runs AS picked ON picked.seq IN (
        SELECT seq FROM runs
        WHERE state = 'queued' AND hold = 0 AND task = lane.value ->> 0 AND queue = lane.value ->> 3
          AND priority = lane.value ->> 1 AND share = lane.value ->> 4 AND due_at <= :now
          AND (expires_at IS NULL OR expires_at > :now) AND (:suspects OR losses = 0)
        ORDER BY due_at, seq LIMIT :free)
    ORDER BY picked.priority DESC, picked.due_at, picked.seq LIMIT :free)
"""

WALK = """
SELECT json_group_array(json_array(-priority, due_at, seq, id, task, key, losses, queue, share)) FROM (
    SELECT * FROM runs
    WHERE state = 'queued' AND hold = 0 AND task = ?1 AND queue = ?8 AND priority = ?2 AND share = ?9 AND due_at <= ?3
      AND (due_at, seq) > (?4, ?5) AND (expires_at IS NULL OR expires_at > ?3) AND (?6 OR losses = 0)
    ORDER BY due_at, seq LIMIT ?7)
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

# Undo a claim, with a later due time.
GIVE_BACK = """
UPDATE runs SET state = 'queued', fence = fence - 1, due_at = ?, worker = NULL, claim_n = NULL, claimed_at = NULL,
    until = NULL, offer_at = NULL WHERE id IN (SELECT value FROM json_each(?))
"""

SUSPECT = "SELECT EXISTS (SELECT 1 FROM runs WHERE state = 'running' AND worker = ? AND losses > 0)"

LAPSED = f"""
SELECT {RUNS} FROM (
    SELECT * FROM runs WHERE state = 'running' AND until <= ?1 AND (offer_at IS NULL OR offer_at <= ?1)
    ORDER BY until LIMIT {OFFERS})
"""

OFFER = "UPDATE runs SET offer_at = ? WHERE id IN (SELECT value FROM json_each(?))"

UPCOMING = """
SELECT json_group_array(due_at) FROM (
    SELECT soon.due_at FROM json_each(:lanes) AS lane CROSS JOIN runs AS soon ON soon.seq IN (
        SELECT seq FROM runs
        WHERE state = 'queued' AND hold = 0 AND task = lane.value ->> 0 AND queue = lane.value ->> 3
          AND priority = lane.value ->> 1 AND share = '' AND due_at > :now
        ORDER BY due_at LIMIT :k)
    WHERE NOT lane.value ->> 5
    UNION ALL
    SELECT soon.due_at FROM json_each(:lanes) AS lane CROSS JOIN runs AS soon ON soon.seq IN (
        SELECT seq FROM runs INDEXED BY runs_shared
        WHERE state = 'queued' AND hold = 0 AND share <> '' AND task = lane.value ->> 0 AND queue = lane.value ->> 3
          AND priority = lane.value ->> 1 AND due_at > :now
        ORDER BY due_at LIMIT :k)
    WHERE lane.value ->> 5
    ORDER BY 1 LIMIT :k)
"""

IDLE = """
SELECT json_group_array(json_array(name, json(tasks), seen_at, wake_at, json(queues))) FROM workers WHERE idle = 1
"""

LISTENING = "SELECT json_group_array(name) FROM workers WHERE idle > 0"

BURY = """
UPDATE workers SET idle = 0, wake_at = NULL WHERE idle > 0 AND name IN (SELECT value FROM json_each(?))
"""

REGISTER = """
INSERT INTO workers (name, n, tasks, seen_at, idle, wake_at, report, queues)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, coalesce(?7, '{}'), ?8)
ON CONFLICT (name) DO UPDATE SET
    n = ?2, tasks = ?3, seen_at = ?4, idle = ?5, wake_at = ?6, report = coalesce(?7, report), queues = ?8
"""

SCHEDULES = """
SELECT json_group_array(json_array(id, schedule)) FROM schedules WHERE id IN (SELECT value FROM json_each(?))
"""

PUT_SCHEDULES = Values(
    "INSERT INTO schedules (id, task, schedule, look_at)",
    "(?, ?, ?, ?)",
    "ON CONFLICT (id) DO UPDATE SET task = excluded.task, schedule = excluded.schedule, look_at = excluded.look_at",
)

DUE_NOW = f"""
SELECT json_group_array(json_array(id, schedule)) FROM (
    SELECT id, schedule FROM schedules WHERE look_at <= ? ORDER BY look_at LIMIT {DUE_SCHEDULES})
"""

OFFER_SCHEDULES = "UPDATE schedules SET look_at = ? WHERE id IN (SELECT value FROM json_each(?))"

DECIDE = """
INSERT INTO decisions (task, key, reason, count, first_at, last_at, run, note, by)
SELECT v.value ->> 0, v.value ->> 1, v.value ->> 2, v.value ->> 3, v.value ->> 4, v.value ->> 4, v.value ->> 5,
       v.value ->> 6, v.value ->> 7
FROM json_each(?) AS v WHERE true
ON CONFLICT (task, key, reason) DO UPDATE SET count = count + excluded.count, last_at = excluded.last_at,
    run = excluded.run, note = excluded.note, by = excluded.by
"""

CHART = """
INSERT INTO rollups (every, minute, task, origin, tally) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (every, minute, task, origin) DO UPDATE SET tally = ?5
"""

COUNT_TOTAL = f"""
INSERT INTO totals (what, name, reason, count, at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (what, name, reason) DO UPDATE SET at = excluded.at,
    count = CASE what WHEN '{What.SUCCEEDED}' THEN max(count, excluded.count) ELSE count + excluded.count END
"""

ALL_SPECS = "SELECT json_group_array(json_array(name, spec)) FROM specs"

PUT_SPEC = "INSERT INTO specs (name, spec) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET spec = ?2"

PUT_MARK = """
INSERT INTO marks (task, key, succeeded_at, finished_at, failures, holder) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (task, key) DO UPDATE SET succeeded_at = ?3, finished_at = ?4, failures = ?5, holder = ?6
"""

PUT_RATE = """
INSERT INTO rates (task, key, full_at, opens_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (task, key) DO UPDATE SET full_at = ?3, opens_at = ?4
"""

PUT_TURN = """
INSERT INTO turns (task, queue, priority, share, got) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (task, queue, priority) DO UPDATE SET share = ?4, got = ?5
"""

NEXT_OPENING = """
SELECT min(opens_at) FROM rates WHERE opens_at IS NOT NULL AND task IN (SELECT value FROM json_each(?))
"""

OPENED = "SELECT json_group_array(json_array(task, key)) FROM rates WHERE opens_at <= ?"

# What stays of a run that is deleted, if its submitter gave the id.
STUB = """
UPDATE ids SET state = r.state, ended_at = r.finished_at FROM runs r WHERE r.id = ids.id AND ids.id = ?
"""
FANS = "SELECT json_array(id, total, allowed, ended, failed, created_at) FROM fans"
KEEP_AUDIT = "INSERT INTO audit (id, at, changed, entry) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
FORGET_AUDIT = "DELETE FROM audit WHERE number <= (SELECT max(number) FROM audit) - ?"
