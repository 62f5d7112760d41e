"""Reads: runs newest first, page by page, and how much each task has waiting."""

from typing import Any

import msgspec

from rota.store import Depth, Page, Reply, RunQuery, after_cursor
from rota.stores.sqlite.rows import RUNS, read_runs, to_json
from rota.stores.sqlite.threads import Transaction

BY_ID = f"SELECT {RUNS} FROM runs WHERE id IN (SELECT value FROM json_each(?))"

DEPTHS = """
SELECT json_group_array(json_array(task, queued, running)) FROM (
    SELECT task, sum(state = 'queued') AS queued, sum(state = 'running') AS running
    FROM runs WHERE state IN ('queued', 'running') GROUP BY task ORDER BY task)
"""


class _DepthRow(Depth, frozen=True, array_like=True):
    """A Depth as the JSON array above."""


_depths = msgspec.json.Decoder(list[_DepthRow])


def runs(tx: Transaction, query: RunQuery) -> Page:
    if query.ids is not None:
        found = {run.id: run for run in read_runs(tx.one(BY_ID, to_json(list(query.ids))))}
        return Page(tx.now, [found[id] for id in query.ids if id in found], None)
    where, values = _conditions(query)
    inner = f"SELECT * FROM runs WHERE {where} ORDER BY seq DESC LIMIT ?"
    sql = f"SELECT json_array(json({RUNS}), json_group_array(seq)) FROM ({inner})"
    rows, seqs = msgspec.json.decode(tx.one(sql, *values, query.limit + 1), type=tuple[msgspec.Raw, list[int]])
    page = read_runs(bytes(rows).decode())
    more = len(page) > query.limit
    return Page(tx.now, page[: query.limit], str(seqs[query.limit - 1]) if more else None)


def depths(tx: Transaction) -> Reply[Depth]:
    rows = _depths.decode(tx.one(DEPTHS))
    return Reply(tx.now, [Depth(row.task, row.queued, row.running) for row in rows])


def _conditions(query: RunQuery) -> tuple[str, list[Any]]:
    conditions: list[tuple[str, Any]] = []
    if query.states:
        conditions.append(("state IN (SELECT value FROM json_each(?))", to_json(list(query.states))))
    if query.task is not None:
        conditions.append(("task = ?", query.task))
    if query.key is not None:
        conditions.append(("key = ?", query.key))
    if (before := after_cursor(query.cursor)) is not None:
        conditions.append(("seq < ?", before))
    return " AND ".join(["true", *(sql for sql, _ in conditions)]), [value for _, value in conditions]
