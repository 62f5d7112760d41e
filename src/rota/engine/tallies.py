"""Tallies: what a worker counts between two reports, for the charts."""

from collections import Counter, defaultdict

from rota.domain.run import Run, State
from rota.domain.settlement import Finish, Settlement
from rota.store import Tally, bucket, microseconds

_WORDS = {State.SUCCEEDED: "succeeded", State.FAILED: "failed", State.CANCELLED: "cancelled"}


class _Counts:
    """The counts of one task."""

    def __init__(self) -> None:
        self.endings: Counter[str] = Counter()
        self.waits: Counter[int] = Counter()
        self.durations: Counter[int] = Counter()
        self.waited = 0.0
        self.ran = 0.0


class Tallies:
    def __init__(self) -> None:
        self._tasks: defaultdict[str, _Counts] = defaultdict(_Counts)

    def claimed(self, run: Run) -> None:
        waited = max(0.0, (run.claimed_at or 0.0) - run.due_at)
        counts = self._tasks[run.task]
        counts.waits[bucket(waited)] += 1
        counts.waited += waited

    def ended(self, run: Run, settlement: Settlement) -> None:
        counts = self._tasks[run.task]
        counts.endings[_word(settlement)] += 1
        seconds = settlement.seconds or 0.0
        counts.durations[bucket(seconds)] += 1
        counts.ran += seconds

    def take(self) -> tuple[Tally, ...]:
        """Return what was counted since the last call of `take`."""
        tallies = tuple(
            Tally(
                task,
                **counts.endings,
                waits=dict(counts.waits),
                durations=dict(counts.durations),
                waited=microseconds(counts.waited),
                ran=microseconds(counts.ran),
            )
            for task, counts in sorted(self._tasks.items())
        )
        self._tasks.clear()
        return tallies


def _word(settlement: Settlement) -> str:
    """Return the field of Tally that counts this settlement."""
    if isinstance(settlement.action, Finish):
        return _WORDS[settlement.action.state]
    if settlement.lost:
        return "lost"
    if settlement.error is not None:
        return "retried"
    return "snoozed" if settlement.outcome == "snoozed" else "other"
