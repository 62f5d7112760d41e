"""Rehearsal: when the periods of a flow will start, and when each step will probably run."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from rota.domain.flow import Steps
from rota.domain.once import Once, period_at
from rota.domain.period import Period
from rota.domain.schedule import Schedule
from rota.domain.timing import GRAIN, Timing

COUNTED = 1500
"""Ticks of a period that are counted one by one; one a minute for a day is fewer."""


class FlowShape(Struct, frozen=True):
    """The parts of a flow that a rehearsal needs. `begun` are periods that have started already."""

    name: str
    once: Once
    steps: Steps
    begun: frozenset[str] = frozenset()


class ExpectedStep(Struct, frozen=True):
    """A step that probably runs from `begin` to `end`. A step of unknown duration takes no time."""

    name: str
    task: str
    begin: float
    end: float


class PeriodStart(Struct, frozen=True):
    """The first tick in a period. `rechecks` is the number of later ticks, which only start missing steps; with `more`,
    there are at least so many. If the period has `begun` already, the first tick is a recheck too."""

    schedule: str
    flow: str
    period: str
    at: float
    rechecks: int
    more: bool = False
    begun: bool = False
    steps: tuple[ExpectedStep, ...] = ()

    @property
    def ends(self) -> float:
        return max((step.end for step in self.steps), default=self.at)


def rehearse(
    schedule: Schedule, flow: FlowShape, durations: Mapping[str, float], start: float, end: float
) -> Iterator[PeriodStart]:
    """Yield the periods of a flow whose first tick is after `start` and until `end`. A ValueError comes before the
    first."""
    timing = Timing.of(schedule)
    nominal = timing.next_after(start)
    while nominal is not None and nominal <= end:
        period = period_at(flow.once, nominal)
        count, more, following = _ticks(timing, flow.once, period, nominal, end)
        begun = period in flow.begun
        at = timing.fires_at(nominal)
        steps = () if begun else expected(flow.steps, durations, at)
        yield PeriodStart(schedule.id, flow.name, period, at, count if begun else count - 1, more, begun, steps)
        nominal = following


def expected(steps: Steps, durations: Mapping[str, float], start: float) -> tuple[ExpectedStep, ...]:
    """Return when each step will probably run: from the end of the last step before it."""
    found: dict[str, ExpectedStep] = {}
    for name, spec in steps.items():
        begin = max((found[parent].end for parent in spec.after), default=start)
        found[name] = ExpectedStep(name, spec.task, begin, begin + durations.get(spec.task, 0.0))
    return tuple(sorted(found.values(), key=lambda step: step.begin))


def _ticks(timing: Timing, once: Once, period: str, first: float, end: float) -> tuple[int, bool, float | None]:
    """Return the number of ticks in a period from `first` on, whether there are more, and the first tick of the next
    period."""
    over = once.bounds(period)[1].timestamp() if isinstance(once, Period) else None
    count, at = 1, timing.next_after(first)
    while at is not None and at <= end and (at < over if over is not None else period_at(once, at) == period):
        if over is not None and count == COUNTED:
            return count, True, timing.next_after(over - GRAIN)
        count, at = count + 1, timing.next_after(at)
    return count, False, at
