"""Queries: runs, rows, stats and depths."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from rota.domain.decision import DecisionCount, Reason
from rota.domain.fan import Fan
from rota.domain.guards import Mark
from rota.domain.run import FINAL, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import AuditEntry, Freeze, MarkRow, Orders, Position, Report, RowQuery, RunQuery, WorkerSeen
from rota.stores.audit import from_text
from rota.stores.postgres.driver import Record
from rota.stores.postgres.rows import RUN_COLUMNS, read_schedule, read_spec
from rota.stores.unreadable import Kind

_report = msgspec.json.Decoder(Report)

# Every query also returns the store's time, even if it finds no rows.
WITH_TIME = """
SELECT {schema}.now_of($1, $2, false) AS now, found.*
FROM (SELECT 1) AS one LEFT JOIN ({query}) AS found ON true {order}
"""

DEPTHS = """
SELECT task, sum(queued)::bigint AS queued, sum(running)::bigint AS running, sum(paused)::bigint AS paused FROM (
    SELECT task, count(*) AS queued, 0 AS running, 0 AS paused FROM {schema}.queue WHERE hold = 0 GROUP BY task
    UNION ALL SELECT task, count(*), 0, 0 FROM {schema}.queue WHERE hold = 1 GROUP BY task
    UNION ALL SELECT task, count(*) FILTER (WHERE hold = 2), 0, count(*) FILTER (WHERE hold = 3)
        FROM {schema}.queue WHERE hold > 1 GROUP BY task
    UNION ALL SELECT task, 0, count(*), 0 FROM {schema}.leases GROUP BY task) AS parts
GROUP BY task
"""

# The time stands in a SELECT of its own: else the server calls now_of for each row, which takes 9 µs.
DUE_COUNTS = """
SELECT task, queue, count(*) AS count, min(due_at) AS since FROM {schema}.queue
WHERE hold = 0 AND due_at <= (SELECT {schema}.now_of($1, $2, false)) GROUP BY task, queue LIMIT $3
"""
DUE_COUNTS_OF_TASK = DUE_COUNTS.replace("GROUP BY", "AND task = $4 GROUP BY")

RATES = """
SELECT task, key, full_at FROM {schema}.rates WHERE task = $3 AND key = $4 ORDER BY version DESC LIMIT 1
"""

STATS = """
SELECT minute, task, origin, counts, waits, durations FROM {schema}.rollups WHERE every = $3::smallint
AND minute > (SELECT CASE WHEN $3 = 0 THEN -1 ELSE floor({schema}.now_of($1, $2, false) / 60)::bigint - $4 - $3 END)
"""

TOTALS = """
SELECT what, name, reason, CASE what WHEN 'succeeded_at' THEN max(count) ELSE sum(count) END::bigint AS count
FROM (SELECT what, name, reason, count FROM {schema}.totals
      UNION ALL SELECT what, name, reason, count FROM {schema}.counted) AS t
GROUP BY what, name, reason ORDER BY what, name, reason LIMIT $3
"""

_TABLES = {State.QUEUED: "queue", State.PAUSED: "queue", State.RUNNING: "lease"}


# Each step of the recursion looks up the next task in the index finished_ended.
ENDED_TASKS = """
WITH RECURSIVE tasks AS (
    (SELECT task FROM {schema}.finished ORDER BY task LIMIT 1)
    UNION ALL
    SELECT (SELECT f.task FROM {schema}.finished f WHERE f.task > tasks.task ORDER BY f.task LIMIT 1) FROM tasks
        WHERE tasks.task IS NOT NULL)
SELECT task FROM tasks WHERE task IS NOT NULL
"""


def runs_by_id(ids: Sequence[str]) -> tuple[str, str, list[Any]]:
    return f"SELECT seq, {RUN_COLUMNS} FROM {{schema}}.runs WHERE id = ANY($3)", "", [list(ids)]


def runs_query(query: RunQuery, after: Position | None, wanted: int) -> tuple[str, str, list[Any]]:
    """At most `wanted` runs behind the place `after`, in the order of `query`."""
    args: list[Any] = [wanted]

    def arg(value: object) -> str:
        args.append(value)
        return f"${len(args) + 2}"

    where = ["true"]
    if query.states:
        where.append(f"state = ANY({arg([state.value for state in query.states])})")
    if query.states and State.SUCCEEDED not in query.states and set(query.states) <= FINAL:
        where.append("state <> 'succeeded'")  # in the words of the indexes of these runs
    ended = query.order == "finished" and not query.sorts
    if query.key is not None and not ended:
        key = arg(query.key)
        where.append(f"(key = {key} OR (unique_key = {key} AND unique_key IS DISTINCT FROM key))")
    if query.in_group is not None:
        where.append(f"id = ANY(ARRAY(SELECT run FROM {{schema}}.grouped WHERE grp = {arg(query.in_group)}))")
    if ended:
        return _ended_query(query, where, arg, after), "ORDER BY found.finished_at DESC, found.seq DESC", args
    if query.tasks:
        one = len(query.tasks) == 1
        where.append(f"task = {arg(query.tasks[0])}" if one else f"task = ANY({arg(list(query.tasks))})")
    if query.order == "due" and not query.sorts:
        return _due_query(query, where, arg, after), "ORDER BY found.due_at, found.seq", args
    if after is not None:
        where.append(f"seq < {arg(after.seq)}")
    # only the tables that can have runs in these states are read
    views = [f"{table}_runs" for table in sorted({_TABLES.get(state, "finished") for state in query.states})]
    source = " UNION ALL ".join(f"SELECT seq, {RUN_COLUMNS} FROM {{schema}}.{view}" for view in views or ["runs"])
    inner = f"SELECT * FROM ({source}) AS runs WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT $3"
    return inner, "ORDER BY found.seq DESC", args


def _due_query(query: RunQuery, where: list[str], arg: Callable[[object], str], after: Position | None) -> str:
    """Unfinished runs, the first due first. No index has this order: the server looks at all and keeps the first."""
    if after is not None:
        where = [*where, f"(due_at, seq) > ({arg(after.at)}::float8, {arg(after.seq)}::bigint)"]
    views = sorted({_TABLES[state] for state in query.states})
    parts = [
        f"(SELECT seq, {RUN_COLUMNS} FROM {{schema}}.{view}_runs AS runs WHERE {' AND '.join(where)} "
        "ORDER BY due_at, seq LIMIT $3)"
        for view in views
    ]
    return f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS runs ORDER BY due_at, seq LIMIT $3"


def _ended_query(query: RunQuery, where: list[str], arg: Callable[[object], str], after: Position | None) -> str:
    """Ended runs, the last end first. Each task has its part of the index."""
    tasks = f"SELECT unnest({arg(sorted(set(query.tasks)))}::text[]) AS task" if query.tasks else ENDED_TASKS
    if after is not None:
        where = [*where, f"(finished_at, seq) < ({arg(after.at)}::float8, {arg(after.seq)}::bigint)"]
    return f"""
SELECT ended.* FROM ({tasks}) AS tasks CROSS JOIN LATERAL (
    SELECT seq, {RUN_COLUMNS} FROM {{schema}}.finished_runs AS runs
    WHERE runs.task = tasks.task AND {" AND ".join(where)}
    ORDER BY finished_at DESC, seq DESC LIMIT $3) AS ended
ORDER BY finished_at DESC, seq DESC LIMIT $3
"""


class Rows(Struct, frozen=True):
    """How to query one kind of row. `name`: the column by which pages are ordered. `task`: whether it has a task."""

    table: str
    columns: str
    order: str
    read: Callable[[Record], Any]
    name: str = ""
    task: bool = False
    kind: Kind = "row"
    where: str = "true"

    def query(self, query: RowQuery) -> tuple[str, str, list[Any]]:
        conditions: list[tuple[str, Any]] = []
        if self.name:
            conditions.append((self.name + " > ${}", query.after))
            if query.names is not None:
                conditions.append((self.name + " = ANY(${})", list(query.names)))
        if self.task and query.task is not None:
            conditions.append(("task = ${}", query.task))
        if self.task and not self.name and query.key is not None:
            conditions.append(("key = ${}", query.key))
        where = " AND ".join([self.where, *(text.format(place) for place, (text, _) in enumerate(conditions, 4))])
        inner = f"SELECT {self.columns} FROM {{schema}}.{self.table} AS t WHERE {where} ORDER BY {self.order} LIMIT $3"
        outer = ", ".join(f"found.{part}" for part in self.order.split(", "))
        return inner, f"ORDER BY {outer}", [query.limit, *(value for _, value in conditions)]


def _mark(row: Record) -> MarkRow:
    mark = Mark(row["succeeded_at"], row["finished_at"], row["failures"], row["holder"])
    return MarkRow(row["task"], row["key"], mark)


def _decision_count(row: Record) -> DecisionCount:
    values: dict[str, Any] = {name: row[name] for name in DecisionCount.__struct_fields__}
    values["reason"] = Reason(row["reason"])
    return DecisionCount(**values)


def _worker(row: Record) -> WorkerSeen:
    idle = row["idle"] == 1
    orders = Orders(row["seats"], row["quiet"], row["stop"])
    report, queues = _report.decode(row["report"]), tuple(row["queues"])
    return WorkerSeen(row["name"], tuple(row["tasks"]), row["seen_at"], idle, report, orders, queues)


ROWS: dict[type, Rows] = {
    TaskSpec: Rows(
        "specs",
        "name, spec, paused, paused_keys, (SELECT p.until FROM {schema}.pauses p WHERE p.task = t.name) AS until,"
        " (SELECT o.spec FROM {schema}.specs o WHERE o.name = 'override ' || t.name) AS overrides",
        "name",
        read_spec,
        "name",
        kind="spec",
        where="name NOT LIKE 'override %'",
    ),
    WorkerSeen: Rows(
        "workers_seen", "name, tasks, seen_at, idle, report, seats, quiet, stop, queues", "name", _worker, "name"
    ),
    Schedule: Rows(
        "schedules",
        "id, {schema}.as_json(t) AS json",
        "id",
        lambda row: read_schedule(row["json"]),
        "id",
        task=True,
        kind="schedule",
    ),
    MarkRow: Rows("marks", "*", "task, key", _mark, task=True),
    Fan: Rows(
        "fans", "id, total, allowed, ended, failed, created_at", "id", lambda row: Fan(*row[1:]), "id", kind="row"
    ),
    AuditEntry: Rows(
        "audit",
        "number, entry, at, changed",
        "number DESC",
        lambda row: from_text(row["entry"], row["at"], row["changed"]),
    ),
    Freeze: Rows("freezes", "since, until, note, by", "since", lambda row: Freeze(*row[1:])),
    DecisionCount: Rows("decisions", "*", "last_at DESC", _decision_count, task=True),
}
