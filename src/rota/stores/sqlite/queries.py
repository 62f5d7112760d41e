"""Queries of users: pages of runs, newest first; depths, stats, and rows of the other kinds."""

from functools import partial
from typing import Any, TypeVar

import msgspec

from rota.domain.decision import DecisionCount
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import Depth, MarkRow, Page, Reply, RowQuery, RunQuery, Stat, WorkerSeen, after_cursor
from rota.stores.sqlite.rows import RUNS, read_runs, read_schedules, read_specs, read_tallies, to_json
from rota.stores.sqlite.threads import Transaction
from rota.stores.unreadable import legible, row_name

T = TypeVar("T")

BY_ID = f"SELECT {RUNS} FROM runs WHERE id IN (SELECT value FROM json_each(?))"

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

# :task and :key are NULL if the query does not name them. {which} is _NAMED or _BEHIND, so that each uses the index.
_NAMED = "{0} IN (SELECT value FROM json_each(:names)) AND {0} > :after"
_BEHIND = "{0} > :after"
_ABOUT = "(:task IS NULL OR task = :task) AND (:key IS NULL OR key = :key)"
SPECS = """
SELECT json_group_array(json_array(name, spec)) FROM (
    SELECT name, spec FROM specs WHERE {which} ORDER BY name LIMIT :limit)
"""
WORKERS = """
SELECT json_group_array(json_object('name', name, 'tasks', tasks, 'seen_at', seen_at,
    'idle', json(iif(idle = 1, 'true', 'false')), 'report', report))
FROM (SELECT * FROM workers WHERE {which} ORDER BY name LIMIT :limit)
"""
SCHEDULES = """
SELECT json_group_array(json_array(id, schedule)) FROM (
    SELECT id, schedule FROM schedules WHERE {which} AND (:task IS NULL OR task = :task) ORDER BY id LIMIT :limit)
"""
MARKS = f"""
SELECT json_group_array(json_object('task', task, 'key', key, 'mark',
    json_object('succeeded_at', succeeded_at, 'finished_at', finished_at, 'failures', failures)))
FROM (SELECT * FROM marks WHERE {_ABOUT} ORDER BY task, key LIMIT :limit)
"""
DECISIONS = f"""
SELECT json_group_array(json_object('task', task, 'key', key, 'reason', reason, 'count', count,
    'first_at', first_at, 'last_at', last_at, 'run', run, 'note', note, 'by', by))
FROM (SELECT * FROM decisions WHERE {_ABOUT} ORDER BY last_at DESC LIMIT :limit)
"""
STATS = """
SELECT json_group_array(json_array(minute, task, tally)) FROM (
    SELECT * FROM stats WHERE minute > ? ORDER BY minute, task)
"""
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
        found = {run.id: run for run in read_runs(tx.one(BY_ID, to_json(list(query.ids))))[0]}
        return Page(tx.now, [found[id] for id in query.ids if id in found], None)
    where, values = _conditions(query)
    inner = f"SELECT * FROM runs WHERE {where} ORDER BY seq DESC LIMIT ?"
    sql = f"SELECT json_array(json({RUNS}), json_group_array(seq)) FROM ({inner})"
    rows, seqs = msgspec.json.decode(tx.one(sql, *values, query.limit + 1), type=tuple[msgspec.Raw, list[int]])
    more = len(seqs) > query.limit
    if more:  # cut before decoding: a run that cannot be read still counts for the end of the page
        rows = msgspec.Raw(msgspec.json.encode(msgspec.json.decode(rows, type=list[msgspec.Raw])[: query.limit]))
    page, _ = read_runs(bytes(rows).decode())
    return Page(tx.now, page, str(seqs[query.limit - 1]) if more else None)


def depths(tx: Transaction) -> Reply[Depth]:
    return Reply(tx.now, _depths.decode(tx.one(DEPTHS)))


def rows(tx: Transaction, kind: type[T], query: RowQuery) -> Reply[T]:
    names = None if query.names is None else to_json(list(query.names))
    which = (_BEHIND if names is None else _NAMED).format("id" if kind is Schedule else "name")
    wanted = {"names": names, "task": query.task, "key": query.key, "after": query.after, "limit": query.limit}
    found = tx.connection.execute(ROWS[kind].replace("{which}", which), wanted).fetchone()[0]
    if kind is TaskSpec:
        specs: Any = read_specs(found)
        return Reply(tx.now, specs)
    if kind is Schedule:
        schedules: Any = [schedule for _, schedule in read_schedules(found) if schedule is not None]
        return Reply(tx.now, schedules)
    each = [legible("row", row_name(kind, row), partial(_row, kind, row)) for row in msgspec.json.decode(found)]
    return Reply(tx.now, [row for row in each if row is not None])


def _row(kind: type[T], row: dict[str, Any]) -> T:
    if kind is WorkerSeen:
        row = row | {column: msgspec.json.decode(row[column]) for column in ("tasks", "report")}
    return msgspec.convert(row, kind)


def stats(tx: Transaction, minutes: int) -> Reply[Stat]:
    found = read_tallies(tx.one(STATS, int(tx.now // 60) - minutes))
    return Reply(tx.now, [Stat(minute, tally) for minute, tally in found])


def _conditions(query: RunQuery) -> tuple[str, list[Any]]:
    conditions: list[tuple[str, Any]] = []
    if query.states:
        conditions.append(("state IN (SELECT value FROM json_each(?))", to_json(list(query.states))))
    if query.task is not None:
        conditions.append(("task = ?", query.task))
    if query.key is not None:
        conditions.append(("? IN (key, unique_key)", query.key))
    if query.group is not None:
        conditions.append(("grp = ?", query.group))
    if (before := after_cursor(query.cursor)) is not None:
        conditions.append(("seq < ?", before))
    return " AND ".join(["true", *(sql for sql, _ in conditions)]), [value for _, value in conditions]
