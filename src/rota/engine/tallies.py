"""Tallies: what a worker counts between two reports, for the charts."""

from collections import Counter

from rota.domain.run import Run, State
from rota.domain.settlement import Finish, Settlement
from rota.store import Tally, bucket


class Tallies:
    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._waits: dict[str, Counter[int]] = {}
        self._durations: dict[str, Counter[int]] = {}

    def claimed(self, run: Run) -> None:
        waited = max(0.0, (run.claimed_at or 0.0) - run.due_at)
        self._waits.setdefault(run.task, Counter())[bucket(waited)] += 1

    def ended(self, run: Run, settlement: Settlement) -> None:
        self._counts[run.task, _word(settlement)] += 1
        self._durations.setdefault(run.task, Counter())[bucket(settlement.seconds or 0.0)] += 1

    def take(self) -> tuple[Tally, ...]:
        """What was counted since the last time."""
        tasks = {task for task, _ in self._counts} | self._waits.keys()
        tallies = tuple(
            Tally(
                task,
                succeeded=self._counts[task, "succeeded"],
                failed=self._counts[task, "failed"],
                retried=self._counts[task, "retried"],
                other=self._counts[task, "other"],
                waits=dict(self._waits.get(task, {})),
                durations=dict(self._durations.get(task, {})),
            )
            for task in sorted(tasks)
        )
        self._clear()
        return tallies


def _word(settlement: Settlement) -> str:
    if isinstance(settlement.action, Finish):
        return settlement.action.state if settlement.action.state in (State.SUCCEEDED, State.FAILED) else "other"
    return "retried" if settlement.error is not None else "other"
