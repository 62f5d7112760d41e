"""`a | b`, `a & b` and `a.excluding(b)` are the sets of instants that a plain search finds."""

from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rota.domain.triggers import At, Cron, DailyAt, Every, Monthly, Trigger, Weekly
from tests.domain.triggers.strategies import crons, zoned_instants

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
DAY = timedelta(days=1)
WINDOW = timedelta(hours=12)
FIRES = 1000
"""Fires in the window; with more, an example would take too long."""


def fires(trigger: Trigger, start: datetime, end: datetime) -> set[datetime]:
    """The fires from `start` to before `end`, one by one."""
    found: set[datetime] = set()
    fire = trigger.next_after(start - TICK)
    while fire is not None and fire < end:
        found.add(fire)
        assume(len(found) < FIRES)
        fire = trigger.next_after(fire)
    return found


def backwards(trigger: Trigger, start: datetime, end: datetime) -> set[datetime]:
    found: set[datetime] = set()
    fire = trigger.previous_before(end)
    while fire is not None and fire >= start:
        found.add(fire)
        fire = trigger.previous_before(fire)
    return found


@st.composite
def parts(draw: st.DrawFn, zone: str, near: datetime) -> Trigger:
    match draw(st.integers(0, 4)):
        case 0:
            seconds = draw(st.sampled_from([1, 7, 60, 900, 3600, 5400, 100_000, 90.5, 0.75]))
            return Every(seconds, anchor=near - timedelta(seconds=draw(st.integers(-4000, 200_000)) / 4))
        case 1:
            return At(near + timedelta(seconds=draw(st.integers(0, 100_000))))
        case _:
            try:
                return Cron(draw(crons()), zone, draw(st.sampled_from(["vixie", "skip", "twice", "each"])))
            except ValueError as error:
                assume("never comes" not in str(error))
                raise


@given(zoned_instants(), st.data())
@settings(max_examples=25, deadline=None)
def test_combined_triggers_are_sets_of_instants(where: tuple[str, datetime], data: st.DataObject) -> None:
    zone, start = where
    a, b, c = (data.draw(parts(zone, start)) for _ in range(3))
    end = start + WINDOW
    plain = [fires(each, start, end) for each in (a, b, c)]

    for trigger, expected in [
        (a | b | c, plain[0] | plain[1] | plain[2]),
        (a & b, plain[0] & plain[1]),
        (a.excluding(b, c), plain[0] - plain[1] - plain[2]),
        ((a | b) & c, (plain[0] | plain[1]) & plain[2]),
        (a | b.excluding(c), plain[0] | (plain[1] - plain[2])),
    ]:
        assert fires(trigger, start, end) == expected
        assert backwards(trigger, start, end) == expected


@given(zoned_instants(), st.data())
@settings(max_examples=60, deadline=None)
def test_the_seconds_of_a_day_are_the_fires_of_the_day(where: tuple[str, datetime], data: st.DataObject) -> None:
    """Also on days with a clock change, near which half of the instants are."""
    zone, start = where
    day = (start - datetime(1970, 1, 1, tzinfo=UTC)).days
    midnight = datetime(1970, 1, 1, tzinfo=UTC) + day * DAY
    trigger = data.draw(parts(zone, midnight))

    expected = reduce(
        or_,
        (
            1 << (fire - midnight) // timedelta(seconds=1)
            for fire in fires(trigger, midnight, midnight + DAY)
            if not fire.microsecond
        ),
        0,
    )
    assert trigger.seconds_of(day) == expected


def test_a_year_of_excluded_seconds_is_skipped_day_by_day() -> None:
    """31,536,000 fires are excluded between the two that are left."""
    seconds = Cron("* * * * * *")
    only = At(datetime(2026, 3, 1, tzinfo=UTC)) | At(datetime(2027, 3, 1, tzinfo=UTC))
    left = seconds.excluding(seconds.excluding(only))
    assert left.upcoming(NEW_YEAR, 3) == [datetime(2026, 3, 1, tzinfo=UTC), datetime(2027, 3, 1, tzinfo=UTC)]
    assert left.previous_before(datetime(2028, 1, 1, tzinfo=UTC)) == datetime(2027, 3, 1, tzinfo=UTC)
    assert (seconds & only).upcoming(NEW_YEAR, 3) == left.upcoming(NEW_YEAR, 3)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris"])
def test_a_schedule_that_leaves_out_eleven_months_fires_in_the_twelfth(zone: str) -> None:
    trigger = Every(1, anchor=NEW_YEAR).excluding(*(Cron(f"* * * * {month} *", zone) for month in range(1, 12)))
    first = trigger.next_after(NEW_YEAR + 40 * DAY)
    assert first is not None
    assert first == Cron("0 0 1 12 *", zone).next_after(NEW_YEAR)


def test_triggers_that_never_meet_end_in_a_clear_answer() -> None:
    even, odd = Every(2, anchor=NEW_YEAR), Every(2, anchor=NEW_YEAR + timedelta(seconds=1))
    half = Every(1, anchor=NEW_YEAR + timedelta(seconds=0.5))
    for never in (even & odd, even & half, Every(60, anchor=NEW_YEAR).excluding(Every(1, anchor=NEW_YEAR))):
        assert never.next_after(NEW_YEAR) is None
    assert (even & odd).previous_before(NEW_YEAR + DAY) is None


def test_29_february_on_a_monday_is_found() -> None:
    assert (Cron("0 0 29 2 *") & Weekly("mon")).upcoming(NEW_YEAR, 2) == [
        datetime(2044, 2, 29, tzinfo=UTC),
        datetime(2072, 2, 29, tzinfo=UTC),
    ]


def test_a_union_fires_once_when_both_fire() -> None:
    both = DailyAt(9) | Monthly(1, 9) | DailyAt(9, 30)
    nine = NEW_YEAR + timedelta(hours=9)
    assert both.upcoming(NEW_YEAR, 3) == [nine, nine + timedelta(minutes=30), nine + DAY]
    assert DailyAt(9) | DailyAt(9) == DailyAt(9)


def test_combined_parts_get_the_zone_and_the_anchor() -> None:
    trigger = (DailyAt(9) | Every(60)) & Cron("* * * * *", "UTC")
    whole = trigger.in_zone("Europe/Paris").anchored(NEW_YEAR)
    assert str(whole) == ("(daily 09:00 Europe/Paris or every 1m anchor 2026-01-01T00:00:00Z) and cron * * * * * UTC")
    assert whole.next_after(NEW_YEAR) == NEW_YEAR + timedelta(minutes=1)


def test_only_triggers_are_combined() -> None:
    with pytest.raises(TypeError):
        DailyAt(9) | "daily 10:00"  # type: ignore[operator]
    with pytest.raises(TypeError):
        DailyAt(9) & 5  # type: ignore[operator]
    with pytest.raises(ValueError, match="at most 200 others, not 201"):
        reduce(or_, (At(NEW_YEAR + n * DAY) for n in range(201)))
