"""Queries: runs, rows, stats and depths."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from rota.domain.decision import DecisionCount, Reason
from rota.domain.guards import Mark
from rota.domain.run import State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import MarkRow, Report, RowQuery, RunQuery, WorkerSeen, after_cursor
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

STATS = "SELECT minute, task, counts, waits, durations FROM {schema}.stats WHERE minute > $3"

_TABLES = {State.QUEUED: "queue", State.PAUSED: "queue", State.RUNNING: "lease"}


def runs_query(query: RunQuery) -> tuple[str, str, list[Any]]:
    """Runs, newest first. Only the tables that can have runs in the states of `query` are read."""
    if query.ids is not None:
        return f"SELECT seq, {RUN_COLUMNS} FROM {{schema}}.runs WHERE id = ANY($3)", "", [list(query.ids)]
    tables = sorted({_TABLES.get(state, "finished") for state in query.states})
    conditions: list[tuple[str, Any]] = []
    if query.states:
        conditions.append(("state = ANY(${})", [state.value for state in query.states]))
    if query.task is not None:
        conditions.append(("task = ${}", query.task))
    if query.key is not None:
        conditions.append(("${} IN (key, unique_key)", query.key))
    if query.group is not None:
        conditions.append(("id = ANY(ARRAY(SELECT run FROM {{schema}}.grouped WHERE grp = ${}))", query.group))
    if (before := after_cursor(query.cursor)) is not None:
        conditions.append(("seq < ${}", before))
    where = " AND ".join(["true", *(text.format(place) for place, (text, _) in enumerate(conditions, 4))])
    views = [f"{table}_runs" for table in tables] or ["runs"]
    source = " UNION ALL ".join(f"SELECT seq, {RUN_COLUMNS} FROM {{schema}}.{view}" for view in views)
    inner = f"SELECT * FROM ({source}) AS runs WHERE {where} ORDER BY seq DESC LIMIT $3"
    return inner, "ORDER BY found.seq DESC", [query.limit + 1, *(value for _, value in conditions)]


class Rows(Struct, frozen=True):
    """How to query one kind of row. `name`: the column by which pages are ordered. `task`: whether it has a task."""

    table: str
    columns: str
    order: str
    read: Callable[[Record], Any]
    name: str = ""
    task: bool = False
    kind: Kind = "row"

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
        where = " AND ".join(["true", *(text.format(place) for place, (text, _) in enumerate(conditions, 4))])
        inner = f"SELECT {self.columns} FROM {{schema}}.{self.table} AS t WHERE {where} ORDER BY {self.order} LIMIT $3"
        outer = ", ".join(f"found.{part}" for part in self.order.split(", "))
        return inner, f"ORDER BY {outer}", [query.limit, *(value for _, value in conditions)]


def _mark(row: Record) -> MarkRow:
    return MarkRow(row["task"], row["key"], Mark(row["succeeded_at"], row["finished_at"], row["failures"]))


def _decision_count(row: Record) -> DecisionCount:
    values: dict[str, Any] = {name: row[name] for name in DecisionCount.__struct_fields__}
    values["reason"] = Reason(row["reason"])
    return DecisionCount(**values)


def _worker(row: Record) -> WorkerSeen:
    idle = row["idle"] == 1
    return WorkerSeen(row["name"], tuple(row["tasks"]), row["seen_at"], idle, _report.decode(row["report"]))


ROWS: dict[type, Rows] = {
    TaskSpec: Rows(
        "specs", "name, spec, paused", "name", lambda row: read_spec(row["spec"], row["paused"]), "name", kind="spec"
    ),
    WorkerSeen: Rows("workers_seen", "name, tasks, seen_at, idle, report", "name", _worker, "name"),
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
    DecisionCount: Rows("decisions", "*", "last_at DESC", _decision_count, task=True),
}
