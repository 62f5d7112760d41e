"""Tallies: what a worker counts between two reports, for the charts and the metrics."""

from collections import defaultdict
from collections.abc import Sequence

from rota.domain.decision import Reason
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Finish, Settlement
from rota.store import Fired, Tally, Total, What, bucket, microseconds
from rota.store.queries import SCHEDULED

_WORDS = {State.SUCCEEDED: "succeeded", State.FAILED: "failed", State.CANCELLED: "cancelled"}
_POISON, _SUCCEEDED = Reason.POISON, State.SUCCEEDED
AT_ONCE = 1000
"""The most totals of one report, so that a claim stays short when thousands of schedules have fired."""


class _Counts:
    """The counts of one task and origin."""

    def __init__(self) -> None:
        self.endings: dict[str, int] = {}
        self.waits: dict[int, int] = {}
        self.durations: dict[int, int] = {}
        self.waited = 0.0
        self.ran = 0.0


class Tallies:
    def __init__(self) -> None:
        self._tasks: defaultdict[tuple[str, str], _Counts] = defaultdict(_Counts)
        self._totals: dict[tuple[str, str, str], Total] = {}

    def __bool__(self) -> bool:
        return bool(self._tasks or self._totals)

    def claimed(self, runs: Sequence[Run]) -> None:
        """Count how long the runs of a claim have waited. Those that were submitted together have waited equally."""
        waited, place = 0.0, 0
        for run in runs:
            counts, wait = self._tasks[run.task, run.origin.kind], (run.claimed_at or 0.0) - run.due_at
            if wait != waited:
                waited = max(0.0, wait)
                place = bucket(waited)
            counts.waits[place] = counts.waits.get(place, 0) + 1
            counts.waited += waited

    def ended(self, run: Run, settlement: Settlement, now: float) -> None:
        """Count the ending of a call, which the store recorded at `now`."""
        action, origin = settlement.action, run.origin
        counts = self._tasks[run.task, origin.kind]
        word = _word(settlement)
        counts.endings[word] = counts.endings.get(word, 0) + 1
        seconds = settlement.seconds or 0.0
        place = bucket(seconds)
        counts.durations[place] = counts.durations.get(place, 0) + 1
        counts.ran += seconds
        if isinstance(action, Finish):
            if action.reason is _POISON:
                self._count(Total(What.POISONED, run.task))
            if origin.of and action.state is _SUCCEEDED and origin.kind in SCHEDULED:
                self._count(Total(What.SUCCEEDED, origin.of, count=int(now)))

    def stale(self) -> None:
        """The store has refused an ending of this worker: the lease was lost."""
        self._count(Total(What.STALE, ""))

    def unrenewed(self, count: int) -> None:
        """So many leases of this worker could not be renewed."""
        self._count(Total(What.UNRENEWED, "", count=count))

    def fired(self, schedule: Schedule, tick: Tick, fired: Fired, now: float) -> None:
        """Count what became of a tick, which the store judged at `now`."""
        if not fired.applied:
            self._count(Total(What.CONFLICT, ""))
            return
        for decision in fired.decisions:
            self._count(Total(What.FIRED, schedule.id, decision.reason.value))
        if tick.missed is not None:
            self._count(Total(What.FIRED, schedule.id, tick.missed.reason.value, tick.missed.count))
        due = schedule.next_at if schedule.fires_at is None else schedule.fires_at
        if due is not None and (tick.runs or tick.missed):  # else the tick has only moved
            late = max(0.0, now - due)
            self._count(Total(What.LATENESS, schedule.id, str(bucket(late))))
            self._count(Total(What.LATE_BY, schedule.id, count=microseconds(late)))

    def _count(self, total: Total) -> None:
        known = self._totals.get(total.id)
        self._totals[total.id] = total if known is None else known.plus(total.count)

    def take(self) -> tuple[Tally, ...]:
        """Return what was counted of tasks since the last call of `take`."""
        tallies = tuple(
            Tally(
                task,
                **counts.endings,
                waits=counts.waits,
                durations=counts.durations,
                waited=microseconds(counts.waited),
                ran=microseconds(counts.ran),
                origin=origin,
            )
            for (task, origin), counts in sorted(self._tasks.items())
        )
        self._tasks.clear()
        return tallies

    def take_totals(self) -> tuple[Total, ...]:
        """Return what else was counted; what is more than AT_ONCE is for the next call."""
        some = [self._totals.pop(id) for id in list(self._totals)[:AT_ONCE]]
        return tuple(some)


def _word(settlement: Settlement) -> str:
    """Return the field of Tally that counts this settlement."""
    if isinstance(settlement.action, Finish):
        return _WORDS[settlement.action.state]
    if settlement.lost:
        return "lost"
    if settlement.error is not None:
        return "retried"
    return "snoozed" if settlement.outcome == "snoozed" else "other"
