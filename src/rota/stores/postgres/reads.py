"""Reads: what the store answers without a change."""

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from rota import store as port
from rota.domain.run import DEFAULT_QUEUE, Run
from rota.domain.spec import TaskSpec
from rota.stores.names import possible_rows, possible_runs
from rota.stores.postgres import queries
from rota.stores.postgres.calls import Calls
from rota.stores.postgres.driver import Record
from rota.stores.postgres.rows import read_run, read_tally
from rota.stores.search import Search, behind, of_ids
from rota.stores.unreadable import legible, row_name

T = TypeVar("T")


class PostgresReads(Calls):
    async def rows(self, kind: type[T], query: port.RowQuery = port.ALL_ROWS) -> port.Reply[T]:
        query = possible_rows(query)
        if kind is port.Total:
            now, found = await self._read(
                queries.TOTALS, "ORDER BY found.what, found.name, found.reason", [query.limit]
            )
            return port.Reply(now, [port.Total(*row[1:]) for row in found])  # type: ignore[misc]
        if kind is port.DueCount:
            of = queries.DUE_COUNTS if query.task is None else queries.DUE_COUNTS_OF_TASK
            values = [query.limit] if query.task is None else [query.limit, query.task]
            now, found = await self._read(of, "ORDER BY found.task, found.queue", values)
            counts = [
                port.DueCount(row["task"], row["queue"] or DEFAULT_QUEUE, row["count"], row["since"]) for row in found
            ]
            return port.Reply(now, counts)  # type: ignore[arg-type]
        if kind is port.RateRow:
            now, found = await self._read(queries.RATES, "", [query.task or "", query.key or ""])
            return port.Reply(now, [port.RateRow(*row[1:]) for row in found])  # type: ignore[misc]
        rows = queries.ROWS[kind]
        now, found = await self._read(*rows.query(query))
        named: Callable[[Any], str] = partial(row_name, kind) if rows.kind == "row" else itemgetter(1)
        if kind is port.Freeze:
            found = [row for row in found if row["until"] is None or row["until"] > now]
        items = [legible(rows.kind, named(row), partial(rows.read, row)) for row in found]
        if kind is TaskSpec:
            items = [item and item.as_of(now) for item in items]
        return port.Reply(now, [item for item in items if item is not None])

    async def stats(self, minutes: int | None = 60, every: int = port.MINUTE) -> port.Reply[port.Stat]:
        slots = [port.TOTAL, 0] if minutes is None else [every, minutes]
        now, found = await self._read(queries.STATS, "ORDER BY found.minute, found.task, found.origin", slots)
        first = port.TOTAL if minutes is None else port.first_slot(now, minutes, every)
        by_name: dict[tuple[int, str, str], port.Tally] = {}
        for row in found:
            name = row["minute"], row["task"], row["origin"]
            by_name[name] = port.added(by_name.get(name), read_tally(row))
        return port.Reply(now, [port.Stat(at, tally) for (at, _, _), tally in by_name.items() if at >= first])

    async def runs(self, query: port.RunQuery) -> port.Page:
        query = possible_runs(query)
        if query.ids is not None:
            now, rows = await self._read(*queries.runs_by_id(query.ids))
            return of_ids(query, {row["id"]: run for row in rows if (run := _legible_run(row)) is not None}, now)
        search, now = Search(query), self._backend.seen
        while search.goes_on:
            wanted = search.wanted
            now, rows = await self._read(*queries.runs_query(query, search.after, wanted))
            at = "due_at" if query.order == "due" else "finished_at"
            some = [(port.Position(row[at] or 0.0, row["seq"]), _legible_run(row)) for row in rows]
            search.take(some, behind(some, wanted))
        return search.page(now)

    async def counted(self, query: port.RunQuery, at_most: int) -> port.RunCounts:
        inner, _, args = queries.runs_query(possible_runs(query), None, at_most + 1)
        text = f"SELECT task, state, count(*) AS count FROM ({inner}) AS listed GROUP BY task, state"
        _, rows = await self._read(text, "", args)
        return port.RunCounts({(row["task"], row["state"]): row["count"] for row in rows})

    async def depths(self) -> port.Reply[port.Depth]:
        now, found = await self._read(queries.DEPTHS, "ORDER BY found.task", [])
        return port.Reply(now, [port.Depth(row["task"], row["queued"], row["running"], row["paused"]) for row in found])


def _legible_run(row: Record) -> Run | None:
    return legible("run", row["id"], partial(read_run, row[2:]))
