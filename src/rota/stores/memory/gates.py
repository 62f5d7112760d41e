"""What the gates of a claim count, in the memory store: leases of named limits, and rates."""

from collections.abc import Sequence

from rota.domain.gates import RateState
from rota.domain.spec import TaskSpec, limited_by
from rota.stores.memory.counts import Counts


class MemoryGates:
    """A part of MemoryBook, which has these attributes."""

    now: float
    specs: dict[str, TaskSpec]
    count: Counts

    def __init__(self) -> None:
        super().__init__()
        self._limits: dict[str, Sequence[str]] = {}  # run id -> the named limits that its lease counts against
        self._rates: dict[tuple[str, str], tuple[RateState, float | None]] = {}

    def counted(self, row: str) -> int:
        return self.count.limits[row]

    def count_against(self, run: str, rows: Sequence[str]) -> None:
        self._limits[run] = rows
        self.count.limits.update(rows)

    def uncount(self, run: str) -> Sequence[str]:
        rows = self._limits.pop(run, None) if self._limits else None
        if rows is None:
            return ()
        self.count.limits.subtract(rows)
        return rows

    def limited_by(self, rows: Sequence[str]) -> Sequence[str]:
        return limited_by(self.specs.values(), rows)

    def rate(self, task: str, key: str) -> RateState:
        return self._rates.get((task, key), (RateState(), None))[0]

    def put_rate(self, task: str, key: str, state: RateState, opens_at: float | None) -> None:
        self._rates[task, key] = (state, opens_at)

    def forget_rates(self, task: str) -> None:
        self._rates = {name: kept for name, kept in self._rates.items() if name[0] != task}

    def forget_full_rates(self) -> None:
        self._rates = {k: (r, at) for k, (r, at) in self._rates.items() if at is not None or r.full_at > self.now}

    def opened(self) -> Sequence[tuple[str, str]]:
        found = [name for name, (_, opens_at) in self._rates.items() if opens_at is not None and opens_at <= self.now]
        for name in found:
            self._rates[name] = (self._rates[name][0], None)
        return found

    def next_opening(self, tasks: Sequence[str]) -> float | None:
        return min((at for (task, _), (_, at) in self._rates.items() if at is not None and task in tasks), default=None)
