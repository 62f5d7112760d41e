"""What the memory store keeps of workers: their last claims and reports, their orders, and who is idle."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from rota.store import ClaimRequest, Orders, Total, WorkerSeen
from rota.stores.charts import Charts
from rota.stores.idle import Idle


class MemoryWorkers:
    """A part of MemoryBook, which has these attributes and methods."""

    now: float
    charts: Charts

    def __init__(self) -> None:
        super().__init__()
        self.workers: dict[str, WorkerSeen] = {}
        self._claims: dict[str, int] = {}
        self._idle: dict[str, Idle] = {}

    def count_total(self, total: Total) -> None:
        raise NotImplementedError

    def idle(self) -> Sequence[Idle]:
        return list(self._idle.values())

    def wake(self, workers: Iterable[str]) -> None:
        for worker in workers:
            self._idle.pop(worker, None)

    def last_claim(self, worker: str) -> int:
        return self._claims.get(worker, 0)

    def register(self, request: ClaimRequest, n: int, idle: bool, wake_at: float | None, fresh: bool) -> None:
        worker, tasks, queues = request.worker, request.tasks, request.queues
        report = request.report if fresh else None
        self._idle.pop(worker, None)
        if idle:
            self._idle[worker] = Idle(worker, frozenset(tasks), self.now, wake_at, frozenset(queues))
        known = self.workers.get(worker)
        known = known or WorkerSeen(worker, (), 0.0, False)
        kept = known.report if report is None else report.kept
        self.workers[worker] = WorkerSeen(worker, tuple(tasks), self.now, idle, kept, known.orders, tuple(queues))
        self._claims[worker] = n
        if report is not None:
            self.charts.add(int(self.now // 60), report.tallies)
            for total in report.totals:
                self.count_total(total)

    def orders(self, worker: str) -> Orders | None:
        known = self.workers.get(worker)
        return None if known is None else known.orders

    def put_orders(self, worker: str, orders: Orders) -> None:
        self.workers[worker] = replace(self.workers[worker], orders=orders)

    def forget_workers(self, before: float) -> None:
        self.workers = {name: seen for name, seen in self.workers.items() if seen.seen_at > before}
        self._claims = {name: n for name, n in self._claims.items() if name in self.workers}
