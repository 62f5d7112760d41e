"""Tallies: what a worker counts between two reports, for the charts and the metrics."""

from collections import Counter, defaultdict

from rota.domain.decision import Reason
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule, Tick
from rota.domain.settlement import Finish, Settlement
from rota.store import Fired, Tally, Total, What, bucket, microseconds
from rota.store.queries import SCHEDULED

_WORDS = {State.SUCCEEDED: "succeeded", State.FAILED: "failed", State.CANCELLED: "cancelled"}
AT_ONCE = 1000
"""The most totals of one report, so that a claim stays short when thousands of schedules have fired."""


class _Counts:
    """The counts of one task and origin."""

    def __init__(self) -> None:
        self.endings: Counter[str] = Counter()
        self.waits: Counter[int] = Counter()
        self.durations: Counter[int] = Counter()
        self.waited = 0.0
        self.ran = 0.0


class Tallies:
    def __init__(self) -> None:
        self._tasks: defaultdict[tuple[str, str], _Counts] = defaultdict(_Counts)
        self._totals: dict[tuple[str, str, str], Total] = {}

    def __bool__(self) -> bool:
        return bool(self._tasks or self._totals)

    def claimed(self, run: Run) -> None:
        waited = max(0.0, (run.claimed_at or 0.0) - run.due_at)
        counts = self._tasks[run.task, run.origin.kind]
        counts.waits[bucket(waited)] += 1
        counts.waited += waited

    def ended(self, run: Run, settlement: Settlement, now: float) -> None:
        """Count the ending of a call, which the store recorded at `now`."""
        counts = self._tasks[run.task, run.origin.kind]
        counts.endings[_word(settlement)] += 1
        seconds = settlement.seconds or 0.0
        counts.durations[bucket(seconds)] += 1
        counts.ran += seconds
        if not isinstance(settlement.action, Finish):
            return
        if settlement.action.reason is Reason.POISON:
            self._count(Total(What.POISONED, run.task))
        if settlement.action.state is State.SUCCEEDED and run.origin.kind in SCHEDULED and run.origin.of:
            self._count(Total(What.SUCCEEDED, run.origin.of, count=int(now)))

    def stale(self) -> None:
        """The store has refused an ending of this worker: the lease was lost."""
        self._count(Total(What.STALE, ""))

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
                waits=dict(counts.waits),
                durations=dict(counts.durations),
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
