"""Every n days, weeks or months at a time of day."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.domain.triggers import At, Every
from tests.domain.triggers.oracle import change_near, instants, left_out
from tests.domain.triggers.strategies import zoned_instants

PARIS = "Europe/Paris"
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def plain(trigger: Every, zone: ZoneInfo, count: int) -> list[datetime]:
    """The first fires, one day of the calendar after the other."""
    assert trigger.anchor is not None
    assert trigger.at is not None
    first = trigger.anchor.astimezone(zone).date()
    found: list[datetime] = []
    number = 0
    while len(found) < count:
        reading = datetime.combine(_stepped(first, number, trigger.count, trigger.unit), trigger.at)
        shown = instants(reading, zone)
        fire = shown[0] if shown else change_near(reading, zone)
        if fire >= trigger.anchor and (shown or not left_out(reading, fire, zone)):
            found.append(fire)
        number += 1
    return found


def _stepped(first: date, number: int, count: int, unit: str) -> date:
    if unit != "months":
        return first + number * count * timedelta(days=7 if unit == "weeks" else 1)
    months = first.year * 12 + first.month - 1 + number * count
    for day in range(first.day, 0, -1):
        try:
            return date(months // 12, months % 12 + 1, day)
        except ValueError:
            continue
    raise AssertionError


@given(
    zoned_instants(),
    st.integers(1, 40),
    st.sampled_from(["days", "weeks", "months"]),
    st.one_of(st.times(), st.sampled_from([time(2, 30), time(0), time(23, 59, 59)])),
)
@settings(max_examples=120, deadline=None)
def test_fires_are_those_a_plain_calendar_finds(where: tuple[str, datetime], count: int, unit: str, at: time) -> None:
    zone, start = where
    steps: dict[str, int] = {unit: count}
    trigger = Every(**steps, at=at.replace(microsecond=0), tz=zone, anchor=start)
    expected = plain(trigger, ZoneInfo(zone), 8)

    assert trigger.upcoming(start - timedelta(days=99), 8) == expected
    assert trigger.previous_before(expected[0]) is None
    for earlier, later in pairwise(expected):
        assert trigger.next_after(earlier) == trigger.next_after(later - TICK) == later
        assert trigger.previous_before(later) == trigger.previous_before(earlier + TICK) == earlier
    assert all(trigger.seconds_of((fire - datetime(1970, 1, 1, tzinfo=UTC)).days) for fire in expected)


def test_every_other_day_keeps_its_time_of_day_across_a_clock_change() -> None:
    fires = Every(days=2, at="09:00", tz=PARIS, anchor=datetime(2026, 3, 26, tzinfo=UTC)).upcoming(NEW_YEAR, 4)
    assert [(fire.day, fire.hour) for fire in fires] == [(26, 8), (28, 8), (30, 7), (1, 7)]


def test_a_month_that_is_too_short_has_its_last_day() -> None:
    fires = Every(months=1, at="00:00", anchor=datetime(2026, 1, 31, tzinfo=UTC)).upcoming(NEW_YEAR, 5)
    assert [(fire.month, fire.day) for fire in fires] == [(1, 31), (2, 28), (3, 31), (4, 30), (5, 31)]


def test_the_time_of_the_first_day_counts_only_if_it_is_still_to_come() -> None:
    morning, evening = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (8, 10))
    every = Every(days=2, at="09:00")
    assert every.anchored(morning).next_after(morning) == datetime(2026, 1, 1, 9, tzinfo=UTC)
    assert every.anchored(evening).next_after(evening) == datetime(2026, 1, 3, 9, tzinfo=UTC)


def test_another_time_of_day_keeps_the_days_and_another_step_does_not() -> None:
    assert Every(days=2, at="09:00").cadence() == Every(days=2, at="10:00", tz=PARIS, jitter=5).cadence() == ("2 days",)
    assert Every(days=2, at="09:00").cadence() != Every(days=2).cadence()
    assert (Every(weeks=2, at="09:00") | At(NEW_YEAR)).cadence() == ("2 weeks",)


def test_the_zone_of_the_app_is_filled_in() -> None:
    assert str(Every(weeks=2, at="09:00").in_zone(PARIS)) == "every 2 weeks at 09:00 Europe/Paris"
    assert Every(weeks=2).in_zone(PARIS) == Every(weeks=2)


@pytest.mark.parametrize("years", [1, 9000])
def test_the_ends_of_time_are_no_error(years: int) -> None:
    every = Every(months=7, at="09:00", tz=PARIS, anchor=datetime(years, 1, 1, tzinfo=UTC))
    for instant in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)):
        later, earlier = every.next_after(instant), every.previous_before(instant)
        assert later is None or later > instant
        assert earlier is None or earlier < instant
