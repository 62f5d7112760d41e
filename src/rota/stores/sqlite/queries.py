"""Queries of users: pages of runs, newest first; depths, stats, and rows of the other kinds."""

import heapq
from functools import partial
from typing import Any, TypeVar

import msgspec

from rota.domain.decision import DecisionCount
from rota.domain.fan import Fan
from rota.domain.run import DEFAULT_QUEUE, Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec, joined
from rota.store import (
    TOTAL,
    AuditEntry,
    Depth,
    DueCount,
    Freeze,
    MarkRow,
    Page,
    Position,
    RateRow,
    Reply,
    RowQuery,
    RunCounts,
    RunQuery,
    Stat,
    Total,
    WorkerSeen,
    first_slot,
)
from rota.stores.audit import from_text
from rota.stores.search import Search, behind, of_ids
from rota.stores.sqlite.rows import RUNS, read_runs, read_schedules, read_specs, read_tallies, to_json
from rota.stores.sqlite.statements import ALL_SPECS, FANS, LANES
from rota.stores.sqlite.threads import Transaction
from rota.stores.unreadable import legible, row_name

T = TypeVar("T")

BY_ID = f"SELECT {RUNS} FROM runs WHERE id IN (SELECT value FROM json_each(?))"
BY_SEQ = f"SELECT {RUNS} FROM runs WHERE seq IN (SELECT value FROM json_each(?))"
UNSUCCESSFUL = {State.FAILED, State.CANCELLED}
"""The states whose runs have indexes of their own. SQLite uses such an index only for a condition in the same words."""
FEW = 5000
"""Unfinished runs that are read from their indexes: if there are more, a walk from the newest run finds some soon."""
UNFINISHED = {
    State.QUEUED: [f"state = 'queued' AND hold = {hold}" for hold in (0, 1, 2)],
    State.RUNNING: ["state = 'running'"],
    State.PAUSED: ["state = 'paused'"],
}
"""Each condition has an index of its own, in the same words."""
ARRIVED = "SELECT seq, id FROM runs WHERE {0} ORDER BY seq DESC LIMIT ?"
COUNTED = "SELECT task, state, count(*) FROM runs WHERE seq IN (SELECT seq FROM ({0})) GROUP BY task, state"
SEQS = "SELECT seq FROM (SELECT seq FROM runs WHERE {0} ORDER BY seq DESC LIMIT ?)"
ENDED = """
SELECT finished_at, seq, id FROM runs WHERE task = ? AND finished_at IS NOT NULL AND {0}
ORDER BY finished_at DESC, seq DESC LIMIT ?
"""
# Each step of the recursion looks up the next task in the index runs_ended.
ENDED_TASKS = """
WITH RECURSIVE tasks (task) AS (
    SELECT min(task) FROM runs WHERE finished_at IS NOT NULL
    UNION ALL
    SELECT (SELECT min(task) FROM runs WHERE finished_at IS NOT NULL AND task > tasks.task) FROM tasks
        WHERE tasks.task IS NOT NULL)
SELECT task FROM tasks WHERE task IS NOT NULL
"""

# Each SELECT has an index of its own.
UNFINISHED_TASKS = """
SELECT DISTINCT task FROM (
    SELECT DISTINCT task FROM runs WHERE state = 'queued' AND hold = 0
    UNION ALL SELECT DISTINCT task FROM runs WHERE state = 'queued' AND hold = 1
    UNION ALL SELECT DISTINCT task FROM runs WHERE state = 'queued' AND hold = 2
    UNION ALL SELECT DISTINCT task FROM runs WHERE state = 'running'
    UNION ALL SELECT DISTINCT task FROM runs WHERE state = 'paused')
"""
# The first runs of each lane behind a place.
DUE_LANES = """
SELECT soon.due_at, soon.seq, soon.id FROM json_each(:lanes) AS lane CROSS JOIN runs AS soon ON soon.seq IN (
    SELECT seq FROM runs
    WHERE state = 'queued' AND hold = 0 AND task = lane.value ->> 0 AND queue = lane.value ->> 3
      AND priority = lane.value ->> 1 AND share = '' AND (due_at, seq) > (:at, :seq)
    ORDER BY due_at, seq LIMIT :wanted)
WHERE NOT lane.value ->> 5
UNION ALL
SELECT soon.due_at, soon.seq, soon.id FROM json_each(:lanes) AS lane CROSS JOIN runs AS soon ON soon.seq IN (
    SELECT seq FROM runs INDEXED BY runs_shared
    WHERE state = 'queued' AND hold = 0 AND share <> '' AND task = lane.value ->> 0 AND queue = lane.value ->> 3
      AND priority = lane.value ->> 1 AND (due_at, seq) > (:at, :seq)
    ORDER BY due_at, seq LIMIT :wanted)
WHERE lane.value ->> 5
ORDER BY 1, 2 LIMIT :wanted
"""
# Runs that are in no lane: all of them are looked at, each kind in its own index. SQLite would choose the index of all
# runs of a task, with those that have ended.
DUE_OTHERS = """
SELECT due_at, seq, id FROM (
    SELECT due_at, seq, id, task, state FROM runs INDEXED BY runs_parked WHERE state = 'queued' AND hold = 1
    UNION ALL SELECT due_at, seq, id, task, state FROM runs INDEXED BY runs_waiting WHERE state = 'queued' AND hold = 2
    UNION ALL SELECT due_at, seq, id, task, state FROM runs INDEXED BY runs_running WHERE state = 'running'
    UNION ALL SELECT due_at, seq, id, task, state FROM runs INDEXED BY runs_paused WHERE state = 'paused')
WHERE state IN (SELECT value FROM json_each(:states)) AND task IN (SELECT value FROM json_each(:tasks))
  AND (due_at, seq) > (:at, :seq)
ORDER BY due_at, seq LIMIT :wanted
"""

# Each SELECT counts in an index of its own.
DEPTHS = """
SELECT json_group_array(json_object('task', task, 'queued', queued, 'running', running, 'paused', paused)) FROM (
    SELECT task, sum(queued) AS queued, sum(running) AS running, sum(paused) AS paused FROM (
        SELECT task, count(*) AS queued, 0 AS running, 0 AS paused FROM runs
            WHERE state = 'queued' AND hold = 0 GROUP BY task
        UNION ALL SELECT task, count(*), 0, 0 FROM runs WHERE state = 'queued' AND hold = 1 GROUP BY task
        UNION ALL SELECT task, count(*), 0, 0 FROM runs WHERE state = 'queued' AND hold = 2 GROUP BY task
        UNION ALL SELECT task, 0, count(*), 0 FROM runs WHERE state = 'running' GROUP BY task
        UNION ALL SELECT task, 0, 0, count(*) FROM runs WHERE state = 'paused' GROUP BY task)
    GROUP BY task ORDER BY task)
"""

# In the due index alone.
DUE_COUNTS = """
SELECT task, queue, count(*), min(due_at) FROM runs
WHERE state = 'queued' AND hold = 0 AND due_at <= :now{which} GROUP BY task, queue
ORDER BY task, queue LIMIT :limit
"""

# :task and :key are NULL if the query does not name them. {which} is _NAMED or _BEHIND, so that each uses the index.
_NAMED = "{0} IN (SELECT value FROM json_each(:names)) AND {0} > :after"
_BEHIND = "{0} > :after"
_ABOUT = "(:task IS NULL OR task = :task) AND (:key IS NULL OR key = :key)"
SPECS = """
SELECT json_group_array(json_array(name, spec)) FROM (
    SELECT name, spec FROM specs WHERE {which} AND name NOT GLOB 'override *' ORDER BY name LIMIT :limit)
"""
WORKERS = """
SELECT json_group_array(json_object('name', name, 'tasks', tasks, 'seen_at', seen_at,
    'idle', json(iif(idle = 1, 'true', 'false')), 'report', report, 'orders', orders, 'queues', queues))
FROM (SELECT * FROM workers WHERE {which} ORDER BY name LIMIT :limit)
"""
SCHEDULES = """
SELECT json_group_array(json_array(id, schedule)) FROM (
    SELECT id, schedule FROM schedules WHERE {which} AND (:task IS NULL OR task = :task) ORDER BY id LIMIT :limit)
"""
MARKS = f"""
SELECT json_group_array(json_object('task', task, 'key', key, 'mark',
    json_object('succeeded_at', succeeded_at, 'finished_at', finished_at, 'failures', failures,
    'holder', holder)))
FROM (SELECT * FROM marks WHERE {_ABOUT} ORDER BY task, key LIMIT :limit)
"""
DECISIONS = f"""
SELECT json_group_array(json_object('task', task, 'key', key, 'reason', reason, 'count', count,
    'first_at', first_at, 'last_at', last_at, 'run', run, 'note', note, 'by', by))
FROM (SELECT * FROM decisions WHERE {_ABOUT} ORDER BY last_at DESC LIMIT :limit)
"""
STATS = """
SELECT json_group_array(json_array(every, minute, task, origin, tally)) FROM (
    SELECT * FROM rollups WHERE every = ? AND minute >= ? ORDER BY minute, task, origin)
"""
RATES = "SELECT task, key, full_at FROM rates WHERE task = ? AND key = ?"
TOTALS = "SELECT what, name, reason, count FROM totals ORDER BY what, name, reason LIMIT ?"
ROWS: dict[type, str] = {
    TaskSpec: SPECS,
    WorkerSeen: WORKERS,
    Schedule: SCHEDULES,
    MarkRow: MARKS,
    DecisionCount: DECISIONS,
}


_depths = msgspec.json.Decoder(list[Depth])


def runs(tx: Transaction, query: RunQuery) -> Page:
    if query.ids is not None:
        return of_ids(query, _by_id(tx.one(BY_ID, to_json(list(query.ids)))), tx.now)
    search = Search(query)
    while search.goes_on:
        wanted = search.wanted
        walk = _arrived if query.sorts else {"finished": _ended, "due": _due}.get(query.order, _arrived)
        places = walk(tx, query, search.after, wanted)
        found = _by_id(tx.one(BY_SEQ, to_json([place.seq for _, place in places])))
        some = [(place, found.get(id)) for id, place in places]
        search.take(some, behind(some, wanted))
    return search.page(tx.now)


def _by_id(text: str) -> dict[str, Run]:
    return {run.id: run for run in read_runs(text)[0]}


def _arrived(tx: Transaction, query: RunQuery, after: Position | None, wanted: int) -> list[tuple[str, Position]]:
    """The ids and places of `wanted` runs, newest first."""
    sql, values = _arrivals(tx, query, after, wanted)
    return [(id, Position(0.0, seq)) for seq, id in tx.connection.execute(sql, values)]


def counted(tx: Transaction, query: RunQuery, at_most: int) -> RunCounts:
    sql, values = _arrivals(tx, query, None, at_most + 1)
    return RunCounts(
        {(task, state): count for task, state, count in tx.connection.execute(COUNTED.format(sql), values)}
    )


def _arrivals(tx: Transaction, query: RunQuery, after: Position | None, wanted: int) -> tuple[str, list[Any]]:
    where, values = _conditions(query)
    few = _few_unfinished(tx, query)
    if few is not None:
        where, values = f"{where} AND seq IN (SELECT value FROM json_each(?))", [*values, to_json(few)]
    if after is not None:
        where, values = f"{where} AND seq < ?", [*values, after.seq]
    if query.key is None:
        return ARRIVED.format(where), [*values, wanted]
    parts = [  # a union, so that each part uses its own index
        f"{which} AND {where}"
        for which in ("key = ?", "unique_key = ? AND unique_key IS NOT NULL AND unique_key IS NOT key")
    ]
    return ARRIVED.format(f"seq IN ({' UNION '.join(map(SEQS.format, parts))})"), [
        *(query.key, *values, wanted) * 2,
        wanted,
    ]


def _few_unfinished(tx: Transaction, query: RunQuery) -> list[int] | None:
    """The places of all runs in the states of the query, if these are unfinished and the runs are few; None if not.
    Without them, a look for the few would pass all runs that have ended."""
    if not query.states or not set(query.states) <= UNFINISHED.keys():
        return None
    parts = [f"SELECT seq FROM runs WHERE {which}" for state in query.states for which in UNFINISHED[state]]
    found = [seq for (seq,) in tx.connection.execute(f"{' UNION ALL '.join(parts)} LIMIT {FEW + 1:d}")]
    return found if len(found) <= FEW else None


def _ended(tx: Transaction, query: RunQuery, after: Position | None, wanted: int) -> list[tuple[str, Position]]:
    """The ids and places of `wanted` ended runs, the last end first. Each task has its part of the index."""
    where, values = _conditions(msgspec.structs.replace(query, task=None))
    if after is not None:
        where, values = f"{where} AND (finished_at, seq) < (?, ?)", [*values, after.at, after.seq]
    tasks = query.tasks or [task for (task,) in tx.connection.execute(ENDED_TASKS)]
    each = (tx.connection.execute(ENDED.format(where), [task, *values, wanted]) for task in tasks)
    found = [(Position(at, seq), id) for rows in each for at, seq, id in rows]
    return [(id, place) for place, id in heapq.nlargest(wanted, found)]


def _due(tx: Transaction, query: RunQuery, after: Position | None, wanted: int) -> list[tuple[str, Position]]:
    """The ids and places of `wanted` unfinished runs, the first due first: from each lane the first runs, and the first
    of those that are in no lane."""
    tasks = query.tasks or [task for (task,) in tx.connection.execute(UNFINISHED_TASKS)]
    place = (-1.0, 0) if after is None else (after.at, after.seq)
    states = to_json([state.value for state in query.states])
    given = {"tasks": to_json(tasks), "at": place[0], "seq": place[1], "wanted": wanted, "states": states}
    lanes = tx.one(LANES, to_json(tasks), "[]") if State.QUEUED in query.states else "[]"
    rows = [*tx.connection.execute(DUE_LANES, {**given, "lanes": lanes}), *tx.connection.execute(DUE_OTHERS, given)]
    found = [(Position(at, seq), id) for at, seq, id in rows]
    return [(id, place) for place, id in heapq.nsmallest(wanted, found)]


def depths(tx: Transaction) -> Reply[Depth]:
    return Reply(tx.now, _depths.decode(tx.one(DEPTHS)))


def rows(tx: Transaction, kind: type[T], query: RowQuery) -> Reply[T]:
    if kind is Freeze:
        return Reply(tx.now, [row for row in _freezes(tx) if row.in_force(tx.now)])  # type: ignore[misc]
    if kind is Fan:
        return Reply(tx.now, _fans(tx, query))  # type: ignore[arg-type]
    if kind is AuditEntry:
        return Reply(tx.now, _audit(tx, query.limit))  # type: ignore[arg-type]
    if kind is Total:
        return Reply(tx.now, _totals(tx, query.limit))  # type: ignore[arg-type]
    if kind is DueCount:
        which = "" if query.task is None else " AND task = :task"
        wanted = {"now": tx.now, "task": query.task, "limit": query.limit}
        found = tx.connection.execute(DUE_COUNTS.replace("{which}", which), wanted)
        counts: Any = [DueCount(task, queue or DEFAULT_QUEUE, count, since) for task, queue, count, since in found]
        return Reply(tx.now, counts)
    if kind is RateRow:
        found = tx.connection.execute(RATES, [query.task, query.key or ""])
        return Reply(tx.now, [RateRow(*row) for row in found])  # type: ignore[misc]
    names = None if query.names is None else to_json(list(query.names))
    which = (_BEHIND if names is None else _NAMED).format("id" if kind is Schedule else "name")
    wanted = {"names": names, "task": query.task, "key": query.key, "after": query.after, "limit": query.limit}
    found = tx.connection.execute(ROWS[kind].replace("{which}", which), wanted).fetchone()[0]
    if kind is TaskSpec:
        known = read_specs(tx.one(ALL_SPECS))
        specs: Any = [spec.as_of(tx.now) for spec in joined(read_specs(found), known)]
        return Reply(tx.now, specs)
    if kind is Schedule:
        schedules: Any = [schedule for _, schedule in read_schedules(found) if schedule is not None]
        return Reply(tx.now, schedules)
    each = [legible("row", row_name(kind, row), partial(_row, kind, row)) for row in msgspec.json.decode(found)]
    return Reply(tx.now, [row for row in each if row is not None])


def _fans(tx: Transaction, query: RowQuery) -> list[Fan]:
    which = "id > ?" if query.names is None else "id IN (SELECT value FROM json_each(?))"
    wanted = query.after if query.names is None else to_json(list(query.names))
    found = tx.connection.execute(f"{FANS} WHERE {which} ORDER BY id LIMIT ?", [wanted, query.limit])
    return [Fan(*msgspec.json.decode(text)) for (text,) in found]


def _audit(tx: Transaction, limit: int) -> list[AuditEntry]:
    found = tx.connection.execute("SELECT entry, at, changed FROM audit ORDER BY number DESC LIMIT ?", [limit])
    each = [legible("row", "audit", partial(from_text, *row)) for row in found]
    return [entry for entry in each if entry is not None]


def _totals(tx: Transaction, limit: int) -> list[Total]:
    return [Total(*row) for row in tx.connection.execute(TOTALS, [limit])]


def _freezes(tx: Transaction) -> list[Freeze]:
    return [msgspec.json.decode(text, type=Freeze) for (text,) in tx.connection.execute("SELECT freeze FROM freezes")]


def _row(kind: type[T], row: dict[str, Any]) -> T:
    if kind is WorkerSeen:
        row = row | {column: msgspec.json.decode(row[column]) for column in ("tasks", "report", "orders", "queues")}
    return msgspec.convert(row, kind)


def stats(tx: Transaction, minutes: int | None, every: int) -> Reply[Stat]:
    slots = (TOTAL, TOTAL) if minutes is None else (every, first_slot(tx.now, minutes, every))
    found = read_tallies(tx.one(STATS, *slots))
    return Reply(tx.now, [Stat(minute, tally) for minute, tally in found])


def _conditions(query: RunQuery) -> tuple[str, list[Any]]:
    """The conditions on states, tasks and the group."""
    conditions: list[tuple[str, Any]] = []
    if query.tasks:
        one = len(query.tasks) == 1
        conditions.append(
            ("task = ?", query.tasks[0])
            if one
            else ("task IN (SELECT value FROM json_each(?))", to_json(list(query.tasks)))
        )
    if query.in_group is not None:
        conditions.append(("grp = ?", query.in_group))
    states = ["state IN ('failed', 'cancelled')"] if query.states and not set(query.states) - UNSUCCESSFUL else []
    states += [f"state IN ({', '.join(repr(state.value) for state in query.states)})"] if query.states else []
    return " AND ".join(["true", *states, *(sql for sql, _ in conditions)]), [value for _, value in conditions]
