"""Whatever the trigger, the policy and the moments at which somebody looks: each nominal time is answered once."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rota.domain.schedule import CATCH_UP_CAP, CatchUp, Missed, Schedule, paused, resumed
from rota.domain.ticks import moved_tick
from rota.domain.timing import COUNTED, Timing, moment, stored
from rota.domain.triggers import At, Cron, Every, Trigger
from tests.domain.timetables import NOON, fired, known
from tests.domain.triggers.strategies import crons, zones

SPAN = 40 * 86_400.0
MOST = 3000
"""Ticks of one story; one of more is not told."""
HAIR = 0.00005


def _comes(expression: str) -> bool:
    """Not a date that never comes, which is refused."""
    try:
        Cron(expression)
    except ValueError:
        return False
    return True


@st.composite
def triggers(draw: st.DrawFn) -> str:
    interval = draw(st.sampled_from([0.1, 0.75, 1, 60, 3600, 5400, 86_400]))
    jitter = draw(st.sampled_from([0.0, 0.0, interval / 3, interval - 0.000001]))
    every = Every(interval, jitter=timedelta(seconds=jitter))
    cron = f"cron {draw(crons().filter(_comes))} {draw(zones)}"
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return str(At(moment(NOON + draw(st.integers(-9, 10**6)))))
    if kind == 1:
        return f"{every} excluding cron 0 9 * * * UTC"
    return str(every) if kind < 4 else cron


@st.composite
def schedules(draw: st.DrawFn, catch_up: CatchUp) -> Schedule:
    now = NOON + draw(st.sampled_from([0.0, 0.5, 0.12345]))
    return known(
        draw(triggers()),
        now,
        catch_up=catch_up,
        grace=draw(st.sampled_from([None, None, 0.5, 90.0, 7200.0])),
        start=draw(st.sampled_from([None, None, now + 777])),
        end=draw(st.sampled_from([None, None, None, now + 100_000])),
    )


CENTURY = 36_525 * 86_400.0


@st.composite
def looks(draw: st.DrawFn, schedule: Schedule) -> list[float]:
    """Seconds from one look to the next: a part of a tick, some ticks, or more than are ever made up.

    Centuries at most: ten looks at what comes every 28 years stay within the years that a date can name.
    """
    near = Timing.of(schedule).trigger.upcoming(moment(schedule.next_at or NOON), 20)
    tick = (near[-1] - near[0]).total_seconds() / len(near) if len(near) > 1 else 1000.0
    ticks = st.one_of(st.floats(0, 1), st.floats(0, 9), st.sampled_from([0.0, 1.0, 3.0, 130.0]))
    return [min(count * tick, 7 * CENTURY) for count in draw(st.lists(ticks, min_size=1, max_size=10))]


@dataclass
class Story:
    """What became of a schedule's nominal times."""

    schedule: Schedule
    made: Counter[float] = field(default_factory=Counter[float])
    missed: list[Missed] = field(default_factory=list[Missed])
    eras: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """From when ticks were owed, and when somebody looked last."""

    def look(self, now: float) -> None:
        """As a store offers it and a worker fires it."""
        since = self.schedule.since
        if self.eras and self.eras[-1][0] == since:
            self.eras.pop()
        self.eras.append((since, now))
        assert moved_tick(self.schedule) is None
        if self.schedule.fires_at is None or self.schedule.fires_at > now:
            return
        tick, self.schedule = fired(self.schedule, now)
        assert tick.fires_at is None or tick.fires_at > now  # else the same worker would be asked again and again
        assert list(tick.nominals) == sorted(tick.nominals)
        assert len(tick.nominals) <= (CATCH_UP_CAP if self.schedule.catch_up == "all" else 1)
        assert all(run.expires_at is None or run.expires_at > now for run in tick.runs)
        assert all(
            run.at is not None and nominal <= run.at <= now
            for run, nominal in zip(tick.runs, tick.nominals, strict=True)
        )
        self.made.update(tick.nominals)
        if tick.missed is not None:
            self.missed.append(tick.missed)

    def nominals(self, last: float) -> list[float]:
        """All there are, one by one and by the trigger alone."""
        schedule = self.schedule
        trigger = Trigger.parse(schedule.trigger).anchored(moment(schedule.anchor or 0.0))
        found: list[float] = []
        at = trigger.next_after(moment(NOON - 1))
        while at is not None and stored(at) <= last:
            assume(len(found) < MOST)
            nominal = stored(at)
            if (schedule.start or 0.0) <= nominal <= (schedule.end or last):
                found.append(nominal)
            at = trigger.next_after(at)
        return found

    def check(self, first: float) -> None:
        timing = Timing.of(self.schedule)
        last = self.eras[-1][1]
        owed = [n for n in self.nominals(last) if n > first and timing.fires_at(n) <= last]
        answers = self.made + Counter(nominal for nominal in owed for part in self.missed if _within(nominal, part))
        assert answers == Counter(owed)
        for part in self.missed:
            inside = [nominal for nominal in owed if _within(nominal, part)]
            assert (inside[0], inside[-1]) == (part.first, part.last)
            plain = self.schedule.trigger.startswith("every") and "excluding" not in self.schedule.trigger
            exact = plain or len(inside) <= COUNTED
            assert part.count == (len(inside) if exact else COUNTED)
            assert part.more == (not exact)


def _within(nominal: float, part: Missed) -> bool:
    return part.first <= nominal <= part.last


@pytest.mark.parametrize("catch_up", ["latest", "all", "skip"])
@given(data=st.data())
@settings(max_examples=150)
def test_every_nominal_time_is_in_one_tick_or_in_one_missed_range(catch_up: CatchUp, data: st.DataObject) -> None:
    schedule = data.draw(schedules(catch_up))
    first = now = schedule.since
    story = Story(schedule)
    for gap in data.draw(looks(schedule)):
        now = round(now + gap, 5)
        story.look(now)
    story.check(first)


@pytest.mark.parametrize("catch_up", ["latest", "all", "skip"])
@given(data=st.data())
@settings(max_examples=100)
def test_what_fell_into_pauses_is_told_as_missed(catch_up: CatchUp, data: st.DataObject) -> None:
    schedule = data.draw(schedules(catch_up))
    first = now = schedule.since
    story = Story(schedule)
    story.look(now)
    for gap in data.draw(looks(schedule)):
        if data.draw(st.integers(0, 2)) == 0:
            story.schedule = paused(story.schedule, None)
            now = round(now + gap, 5)
            story.schedule = resumed(story.schedule, None, now)
        else:
            now = round(now + gap, 5)
        story.look(now)
    story.check(first)


@given(data=st.data(), off=st.floats(-6 * 3600, 6 * 3600), late=st.floats(0, 3600))
def test_a_daily_tick_that_was_believed_elsewhere_runs_once_that_day(
    data: st.DataObject, off: float, late: float
) -> None:
    """However far its zone has moved it, and however often somebody looks."""
    schedule = known(f"daily 12:00 {data.draw(zones)}", NOON)
    real = schedule.next_at or 0.0
    believed = round(real + off, 5)
    schedule = replace(schedule, next_at=believed, fires_at=believed, catch_up="all", since=NOON - SPAN)
    made: list[float] = []
    for now in (believed, believed + late, real + 6 * 3600 + late):
        if schedule.fires_at is not None and schedule.fires_at <= now:
            tick, schedule = fired(schedule, now)
            made += tick.nominals
            assert tick.missed is None
    assert made == [real]
