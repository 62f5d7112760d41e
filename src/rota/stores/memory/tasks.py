"""What the memory store keeps of tasks: specs, turns of shares, decisions, totals, charts and marks."""

from collections.abc import Collection

from rota.domain.decision import DecisionCount, Reason
from rota.domain.guards import Mark
from rota.domain.spec import TaskSpec
from rota.store import Total
from rota.stores.book import CountedDecision, Turn
from rota.stores.charts import Charts, Totals
from rota.stores.retention import MARK_MEMORY, mark_memory


class MemoryTasks:
    """A part of MemoryBook, which has this attribute."""

    now: float

    def __init__(self) -> None:
        super().__init__()
        self.specs: dict[str, TaskSpec] = {}
        self.decisions: dict[tuple[str, str, Reason], DecisionCount] = {}
        self.marks: dict[tuple[str, str], Mark] = {}
        self.charts = Charts()
        self.totals = Totals()
        self._turns: dict[tuple[str, str, int], Turn] = {}

    def spec(self, task: str) -> TaskSpec | None:
        return self.specs.get(task)

    def put_spec(self, spec: TaskSpec) -> None:
        self.specs[spec.name] = spec

    def count_total(self, total: Total) -> None:
        self.totals.add(total, self.now)

    def count_decision(self, made: CountedDecision) -> None:
        self.count_total(made.total)
        name = (made.task, made.key or "", made.reason)
        known = self.decisions.get(name)
        first_at, before = (self.now, 0) if known is None else (known.first_at, known.count)
        self.decisions[name] = DecisionCount(
            *name, before + made.count, first_at, self.now, made.run, made.note, made.by
        )

    def mark(self, task: str, key: str) -> Mark:
        return self.marks.get((task, key), Mark())

    def put_mark(self, task: str, key: str, mark: Mark) -> None:
        self.marks[task, key] = mark

    def drop_mark(self, task: str, key: str) -> None:
        self.marks.pop((task, key), None)

    def turn(self, task: str, queue: str, priority: int) -> Turn:
        return self._turns.get((task, queue, priority), Turn())

    def put_turn(self, task: str, queue: str, priority: int, turn: Turn) -> None:
        self._turns[task, queue, priority] = turn

    def forget_tasks(self, marks_before: float, waiting: Collection[str]) -> None:
        """Forget what is too old, and the turns of the tasks that are not in `waiting`: none of their runs waits."""
        self._turns = {name: turn for name, turn in self._turns.items() if name[0] in waiting}
        memory = {task: mark_memory(spec) for task, spec in self.specs.items()}
        self.marks = {
            name: mark
            for name, mark in self.marks.items()
            if (mark.finished_at or self.now) > self.now - memory.get(name[0], MARK_MEMORY)
        }
        self.decisions = {name: row for name, row in self.decisions.items() if row.last_at > marks_before}
        self.charts.forget(int(self.now // 60))
        self.totals.forget(self.now)
