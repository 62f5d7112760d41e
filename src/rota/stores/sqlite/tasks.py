"""What SQLite keeps of tasks: specs, turns of shares, decisions, totals and marks."""

from typing import Any

import msgspec
from msgspec.structs import astuple

from rota.domain.guards import Mark
from rota.domain.spec import LIMIT_ROW, TaskSpec
from rota.store import Total
from rota.stores.book import CountedDecision, Turn
from rota.stores.charts import counted_at
from rota.stores.sqlite import statements as sql
from rota.stores.sqlite.gates import Specs
from rota.stores.sqlite.rows import read_specs, to_json
from rota.stores.sqlite.threads import Transaction


class SqliteTasks:
    """A part of SqliteBook, which has these attributes."""

    now: float
    _tx: Transaction
    _specs: Specs
    _decisions: dict[tuple[str, str, str], tuple[Any, ...]]
    _totals: dict[tuple[str, str, str], Total]

    def spec(self, task: str) -> TaskSpec | None:
        if self._specs.version != self._tx.specs:
            found = read_specs(self._tx.one(sql.ALL_SPECS))
            self._specs.known = {spec.name: spec for spec in found}
            self._specs.limited = any(spec.name.startswith(LIMIT_ROW) for spec in found)
            self._specs.version = self._tx.specs
        return self._specs.known.get(task)

    def put_spec(self, spec: TaskSpec) -> None:
        self._tx.execute(sql.PUT_SPEC, spec.name, to_json(spec))
        self._tx.execute("UPDATE clock SET specs = specs + 1")
        self._tx.specs += 1
        self._specs = Specs()  # a copy for this transaction: if it fails, no other transaction has seen the spec

    def turn(self, task: str, queue: str, priority: int) -> Turn:
        query = "SELECT json_array(share, got) FROM turns WHERE task = ? AND queue = ? AND priority = ?"
        found = self._tx.one(query, task, queue, priority)
        return Turn() if found is None else Turn(*msgspec.json.decode(found))

    def put_turn(self, task: str, queue: str, priority: int, turn: Turn) -> None:
        self._tx.execute(sql.PUT_TURN, task, queue, priority, turn.share, turn.got)

    def count_total(self, total: Total) -> None:
        known = self._totals.get(total.id)
        self._totals[total.id] = total if known is None else known.plus(total.count)

    def count_decision(self, made: CountedDecision) -> None:
        self.count_total(made.total)
        name = (made.task, made.key or "", made.reason.value)
        count = made.count + (self._decisions[name][3] if name in self._decisions else 0)
        self._decisions[name] = (*name, count, self.now, made.run, made.note, made.by)

    def mark(self, task: str, key: str) -> Mark:
        query = "SELECT json_array(succeeded_at, finished_at, failures, holder) FROM marks WHERE task = ? AND key = ?"
        found = self._tx.one(query, task, key)
        return Mark() if found is None else Mark(*msgspec.json.decode(found))

    def put_mark(self, task: str, key: str, mark: Mark) -> None:
        self._tx.execute(sql.PUT_MARK, task, key, mark.succeeded_at, mark.finished_at, mark.failures, mark.holder)

    def drop_mark(self, task: str, key: str) -> None:
        self._tx.execute("DELETE FROM marks WHERE task = ? AND key = ?", task, key)

    def flush_decisions(self) -> None:
        if self._decisions:
            self._tx.execute(sql.DECIDE, to_json(list(self._decisions.values())))
            self._decisions = {}

    def flush_totals(self) -> None:
        if self._totals:
            rows = [(*astuple(total), counted_at(total, self.now)) for total in self._totals.values()]
            self._tx.executemany(sql.COUNT_TOTAL, rows)
            self._totals = {}
