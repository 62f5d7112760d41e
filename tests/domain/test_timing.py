"""Timing: a trigger in the seconds that stores keep, and the traps of rounding."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.timing import COUNTED, Timing, moment, stored
from rota.domain.triggers import At, Cron, DailyAt, Every, Trigger
from tests.domain.timetables import DAY, NOON

instants = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


@st.composite
def everies(draw: st.DrawFn) -> Every:
    """Down to the microsecond, which is finer than what stores keep."""
    interval = timedelta(microseconds=draw(st.integers(100_000, 10**11)))
    jitter = timedelta(microseconds=draw(st.integers(0, interval // timedelta(microseconds=1) - 1)))
    return Every(interval, jitter=draw(st.sampled_from([timedelta(0), jitter])), anchor=draw(instants))


@given(instants)
def test_a_stored_instant_is_never_before_the_moment_and_hardly_behind(at: datetime) -> None:
    assert timedelta(0) <= moment(stored(at)) - at <= timedelta(microseconds=11)
    assert stored(moment(stored(at))) == stored(at)


@given(everies(), instants)
def test_there_and_back_is_the_same_tick(every: Every, at: datetime) -> None:
    timing = Timing(every, "seed")
    tick = timing.next_after(stored(at))
    assert tick is not None
    behind = timing.next_after(tick)
    assert behind is not None
    assert behind > tick > stored(at)
    assert timing.previous_before(behind) == tick
    assert timing.settled(tick) == tick
    assert timing.count(tick, behind) == (2, False)


@given(everies(), instants, st.text())
def test_jitter_is_stable_and_never_before_the_nominal_time_nor_behind_the_next(
    every: Every, at: datetime, seed: str
) -> None:
    timing = Timing(every, seed)
    tick = timing.next_after(stored(at)) or 0.0
    fires_at = timing.fires_at(tick)
    assert fires_at == Timing(every, seed).fires_at(tick)
    assert tick <= fires_at <= (timing.next_after(tick) or 0.0)
    assert every.jitter or fires_at == tick


@given(everies(), instants)
def test_the_latest_tick_has_fired_and_the_next_has_not(every: Every, at: datetime) -> None:
    timing = Timing(every, "seed")
    now = max(stored(at), stored(every.anchor or at) + 1)
    latest = timing.latest(now)
    behind = timing.next_after(now) if latest is None else timing.next_after(latest)
    assert latest is None or timing.fires_at(latest) <= now
    assert behind is not None
    assert timing.fires_at(behind) > now


def test_jitter_differs_from_tick_to_tick_and_from_schedule_to_schedule() -> None:
    every = Every(3600, jitter=3599, anchor=moment(NOON))
    ticks = [NOON + 3600 * hour for hour in range(50)]
    one, other = ([Timing(every, seed).fires_at(tick) - tick for tick in ticks] for seed in ("one", "other"))
    assert len({*one, *other}) == 100


@pytest.mark.parametrize("trigger", [Every(60, anchor=moment(NOON - 600)), Cron("* * * * *")])
def test_start_and_end_belong_to_the_time_between(trigger: Trigger) -> None:
    timing = Timing(trigger, "", NOON, NOON + 120)
    assert timing.next_after(NOON - 9999) == NOON
    assert [timing.next_after(NOON + at) for at in (0, 60, 119)] == [NOON + 60, NOON + 120, NOON + 120]
    assert timing.next_after(NOON + 120) is None
    assert timing.previous_before(NOON + 9999) == NOON + 120
    assert [timing.previous_before(NOON + at) for at in (120, 60, 1)] == [NOON + 60, NOON, NOON]
    assert timing.previous_before(NOON) is None
    assert [timing.latest(NOON + at) for at in (-1, 0, 59, 9999)] == [None, NOON, NOON, NOON + 120]


def test_one_instant_settles_where_it_is() -> None:
    timing = Timing(At(moment(NOON)), "")
    assert [timing.settled(NOON + off) for off in (-60, 0, 60)] == [NOON] * 3
    assert (timing.latest(NOON - 1), timing.latest(NOON)) == (None, NOON)
    assert timing.count(NOON, NOON) == (1, False)


@pytest.mark.parametrize(
    ("off", "settled"), [(-3600, 0.0), (3600, 0.0), (-11.9 * 3600, 0.0), (12.1 * 3600, DAY), (-12.1 * 3600, -DAY)]
)
def test_what_was_computed_elsewhere_settles_at_the_nearest_tick(off: float, settled: float) -> None:
    assert Timing(DailyAt(12, tz="UTC"), "").settled(NOON + off) == NOON + settled


def test_between_two_that_are_as_near_the_earlier_one_counts() -> None:
    assert Timing(Cron("30 * * * *"), "").settled(NOON) == NOON - 1800


def test_without_a_tick_nothing_settles() -> None:
    assert Timing(DailyAt(9, tz="UTC"), "", NOON, NOON + 60).settled(NOON) is None


@pytest.mark.parametrize(
    ("last", "count"), [(0, (1, False)), (98, (99, False)), (99, (100, False)), (100, (100, True))]
)
def test_ticks_are_counted_one_by_one_as_far_as_is_cheap(last: int, count: tuple[int, bool]) -> None:
    trigger = Cron("* * * * *")
    assert COUNTED == 100
    assert Timing(trigger, "").count(NOON, NOON + 60 * last) == count
    assert Timing(Every(60, anchor=moment(NOON)), "").count(NOON, NOON + 60 * last) == (last + 1, False)
    excluding = Timing(Every(60, anchor=moment(NOON)).excluding(At(moment(NOON + 60))), "")
    expected = (100, False) if last == 100 else (max(1, last), False) if last else (1, False)
    assert excluding.count(NOON, NOON + 60 * last) == expected
