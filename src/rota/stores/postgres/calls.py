"""Calls: a verb is one call of one function, a question is one statement; both tell the store's time."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rota import store as port
from rota.stores.audit import to_text
from rota.stores.postgres import queries
from rota.stores.postgres.driver import Record, placeholders
from rota.stores.postgres.pool import Pool

if TYPE_CHECKING:
    from rota.stores.postgres.backend import PostgresBackend

RECORDS = (
    "put",
    "put_bare",
    "fire",
    "settle",
    "control",
    "edit",
    "declare",
    "sweep",
    "renew",
    "set_freeze",
    "override",
)
"""Verbs that may record events; `claim` too."""
ANSWERS = {
    "put": "ARRAY(SELECT (r IN ('accepted', 'cancelled'))::text FROM unnest(v.reasons) AS r)",
    "fire": "ARRAY[cardinality(v.applied)::text]",
}
"""What an audit entry counts as changed, for verbs that do not say it in `answers`. twin: rota/stores/audit.py"""


class Calls:
    def __init__(self, backend: "PostgresBackend", pool: Pool) -> None:
        self.pool = pool
        self._backend = backend
        self._schema = backend.schema

    async def _verb(self, name: str, *args: Any, audit: port.AuditEntry | None = None) -> Record:
        """Call a function that returns one row, and publish the hints of that row in this process. The same statement
        keeps `audit`."""
        if audit is None:
            (row,) = await self._call(name, *args)
        else:
            (row,) = await self._audited(audit, name, *args)
        self._publish(row["now"], row.get("hinted") or (), row.get("touched") or (), name in RECORDS)
        return row

    async def _call(
        self, name: str, *args: Any, what: str = "*", named: Mapping[str, Any] = MappingProxyType({})
    ) -> list[Record]:
        """Call a function with `args`, and with `named` by the names of its parameters."""
        backend = self._backend
        args = (backend.me, backend.skew, backend.seen, *args)
        text = _text(self._schema, name, what, len(args), tuple(named))
        return await self.pool.call(text, *args, *named.values())

    async def _audited(self, audit: port.AuditEntry, name: str, *args: Any) -> list[Record]:
        args = (self._backend.me, self._backend.skew, self._backend.seen, *args)
        called = f"{self._schema}.{name}({placeholders(len(args))})"
        entry = f"${len(args) + 1}, ${len(args) + 2}"
        answers = ANSWERS.get(name, "v.answers::text[]")
        text = f"SELECT v.*, {self._schema}.keep_audit({entry}, v.now, {answers}) FROM {called} AS v"
        return await self.pool.call(text, *args, audit.id, to_text(audit))

    async def _read(self, query: str, order: str, args: Sequence[Any]) -> tuple[float, list[Record]]:
        text = queries.WITH_TIME.replace("{query}", query).replace("{order}", order).replace("{schema}", self._schema)
        rows = await self.pool.call(text, self._backend.skew, self._backend.seen, *args)
        now = rows[0]["now"]
        self._backend.seen = max(self._backend.seen, now)
        first = next(iter(list(rows[0].keys())[1:]))
        return now, rows if rows[0][first] is not None else []

    def _publish(self, now: float, hinted: Iterable[str], touched: Iterable[str], recorded: bool = False) -> None:
        """Publish a hint in this process. Other processes get it by NOTIFY when the server commits. `recorded`: there
        are events, if somebody reads them."""
        backend = self._backend
        backend.seen = max(backend.seen, now)
        workers, runs = frozenset(hinted), frozenset(touched)
        events = recorded and now < backend.reads_events_until
        if (workers or runs or events) and backend.hub.watched:
            backend.hub.publish(port.Hint(workers=workers, runs=runs, events=events))


@lru_cache(1000)
def _text(schema: str, name: str, what: str, arguments: int, named: tuple[str, ...]) -> str:
    by_name = "".join(f", {one} => ${place}" for place, one in enumerate(named, arguments + 1))
    return f"SELECT {what} FROM {schema}.{name}({placeholders(arguments)}{by_name})"
