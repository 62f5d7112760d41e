"""What the gates of a claim count, in SQLite: leases of named limits, and rates."""

from collections.abc import Sequence
from typing import Any

import msgspec

from rota.domain.gates import RateState
from rota.domain.spec import TaskSpec, limited_by
from rota.stores.sqlite import statements as sql
from rota.stores.sqlite.rows import to_json
from rota.stores.sqlite.threads import Transaction

_pairs = msgspec.json.Decoder(list[tuple[str, str]])


class Specs:
    """All specs. `version` is the number in the clock row: the specs are read again when that number has changed."""

    def __init__(self) -> None:
        self.version = -1
        self.known: dict[str, TaskSpec] = {}
        self.limited = False
        """There is a named limit, so that leases may count against one."""


class SqliteGates:
    """A part of SqliteBook, which has these attributes and methods."""

    now: float
    _tx: Transaction
    _specs: Specs

    def spec(self, task: str) -> TaskSpec | None:
        raise NotImplementedError

    def _count(self, query: str, *parameters: Any) -> int:
        raise NotImplementedError

    def counted(self, row: str) -> int:
        return self._count("SELECT count(*) FROM counted WHERE limit_row = ?", row)

    def count_against(self, run: str, rows: Sequence[str]) -> None:
        self._tx.executemany("INSERT OR IGNORE INTO counted VALUES (?, ?)", [(run, row) for row in rows])

    def uncount(self, run: str) -> Sequence[str]:
        self.spec("")  # reads the specs, if they have changed
        if not self._specs.limited:
            return ()
        rows = msgspec.json.decode(self._tx.one(sql.COUNTED_OF, run), type=list[str])
        if rows:
            self._tx.execute("DELETE FROM counted WHERE run = ?", run)
        return rows

    def limited_by(self, rows: Sequence[str]) -> Sequence[str]:
        self.spec("")
        return limited_by(self._specs.known.values(), rows)

    def rate(self, task: str, key: str) -> RateState:
        return RateState(self._tx.one("SELECT full_at FROM rates WHERE task = ? AND key = ?", task, key) or 0.0)

    def put_rate(self, task: str, key: str, state: RateState, opens_at: float | None) -> None:
        self._tx.execute(sql.PUT_RATE, task, key, state.full_at, opens_at)

    def forget_rates(self, task: str) -> None:
        self._tx.execute("DELETE FROM rates WHERE task = ?", task)

    def opened(self) -> Sequence[tuple[str, str]]:
        found = self._tx.one(sql.OPENED, self.now)
        if found == "[]":
            return []
        self._tx.execute("UPDATE rates SET opens_at = NULL WHERE opens_at <= ?", self.now)
        return _pairs.decode(found)

    def next_opening(self, tasks: Sequence[str]) -> float | None:
        first = self._tx.one(sql.NEXT_OPENING, to_json(tasks))
        return None if first is None else float(first)
