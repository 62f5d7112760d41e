"""What SQLite keeps of workers: their last claims and reports, their orders, and who is idle."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from rota.domain.run import RunHead
from rota.store import ClaimRequest, Orders, Tally, Total, added
from rota.stores.charts import places
from rota.stores.idle import Idle
from rota.stores.sqlite import statements as sql
from rota.stores.sqlite.rows import read_tally, to_json
from rota.stores.sqlite.threads import Transaction


class _IdleRow(Idle, frozen=True, array_like=True):
    """An Idle as a JSON array."""


_idle = msgspec.json.Decoder(list[_IdleRow])
_orders = msgspec.json.Decoder(Orders)


class SqliteWorkers:
    """A part of SqliteBook, which has these attributes and methods."""

    now: float
    touched: set[str]
    _tx: Transaction
    _seen: dict[str, RunHead | None]

    def count_total(self, total: Total) -> None:
        raise NotImplementedError

    def idle(self) -> Sequence[Idle]:
        return _idle.decode(self._tx.one(sql.IDLE))

    def wake(self, workers: Iterable[str]) -> None:
        """Record in this transaction that the workers were sent a hint, so that the hint reaches every process."""
        woken = to_json(sorted(workers))
        self._tx.execute("UPDATE workers SET idle = 2 WHERE name IN (SELECT value FROM json_each(?))", woken)

    def last_claim(self, worker: str) -> int:
        return self._tx.one("SELECT n FROM workers WHERE name = ?", worker) or 0

    def register(self, request: ClaimRequest, n: int, idle: bool, wake_at: float | None, fresh: bool) -> None:
        report = request.report if fresh else None
        kept = None if report is None else to_json(report.kept)
        tasks, queues = to_json(request.tasks), to_json(request.queues)
        self._tx.execute(sql.REGISTER, request.worker, n, tasks, self.now, idle, wake_at, kept, queues)
        if report is not None:
            for tally in report.tallies:
                self._chart(tally)
            for total in report.totals:
                self.count_total(total)

    def orders(self, worker: str) -> Orders | None:
        found = self._tx.one("SELECT orders FROM workers WHERE name = ?", worker)
        return None if found is None else _orders.decode(found)

    def put_orders(self, worker: str, orders: Orders) -> None:
        self._tx.execute("UPDATE workers SET orders = ? WHERE name = ?", to_json(orders), worker)

    def requested_workers(self) -> set[str]:
        """Return the workers whose runs were requested to stop in this transaction."""
        runs = (self._seen.get(id) for id in self.touched)
        return {run.worker for run in runs if run and run.worker and (run.cancel_requested or run.pause_requested)}

    def _chart(self, tally: Tally) -> None:
        query = "SELECT tally FROM rollups WHERE every = ? AND minute = ? AND task = ? AND origin = ?"
        for place in places(int(self.now // 60), tally):
            known = read_tally(place, self._tx.one(query, *place))
            self._tx.execute(sql.CHART, *place, to_json(added(known, replace(tally, origin=place[3]))))
