"""Rehearsal: when the periods of a flow will start, and when each of its steps can be expected."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from rota.domain.flow import Steps
from rota.domain.once import Once, period_at
from rota.domain.period import Period
from rota.domain.schedule import Schedule
from rota.domain.timing import GRAIN, Timing

COUNTED = 1500
"""Ticks of a period that are counted one by one: every minute of a day is fewer."""


class FlowShape(Struct, frozen=True):
    """A flow as far as a rehearsal must know it; `begun` are periods that were started already."""

    name: str
    once: Once
    steps: Steps
    begun: frozenset[str] = frozenset()


class ExpectedStep(Struct, frozen=True):
    """A step that usually takes as long as from `begin` to `end`; one whose duration nobody knows takes no time."""

    name: str
    task: str
    begin: float
    end: float


class PeriodStart(Struct, frozen=True):
    """The first tick in a period, and how many come behind it (`more`: at least), which only heal. One that has
    `begun` has nothing but rechecks ahead, of which this is the first."""

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
    """After `start`, to `end`. ValueError, if at all, before the first."""
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
    """Each begins when the last of those before it has ended; what does not wait for each other overlaps."""
    found: dict[str, ExpectedStep] = {}
    for name, spec in steps.items():
        begin = max((found[parent].end for parent in spec.after), default=start)
        found[name] = ExpectedStep(name, spec.task, begin, begin + durations.get(spec.task, 0.0))
    return tuple(sorted(found.values(), key=lambda step: step.begin))


def _ticks(timing: Timing, once: Once, period: str, first: float, end: float) -> tuple[int, bool, float | None]:
    """How many ticks of a period come from the first on, whether there are more, and the first of the next period."""
    over = once.bounds(period)[1].timestamp() if isinstance(once, Period) else None
    count, at = 1, timing.next_after(first)
    while at is not None and at <= end and (at < over if over is not None else period_at(once, at) == period):
        if over is not None and count == COUNTED:
            return count, True, timing.next_after(over - GRAIN)
        count, at = count + 1, timing.next_after(at)
    return count, False, at
