"""Every, At, the named triggers, excluding: what they fire and that they are values."""

import dataclasses
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rota.domain.triggers import At, Cron, DailyAt, Every, Monthly, Trigger, Weekly

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


def test_every_fires_at_the_anchor_and_at_whole_intervals_after_it() -> None:
    every = Every(hours=1, anchor=NEW_YEAR)
    assert every.next_after(NEW_YEAR - timedelta(days=9)) == NEW_YEAR
    assert every.next_after(NEW_YEAR) == NEW_YEAR + HOUR
    assert every.next_after(NEW_YEAR + HOUR - TICK) == NEW_YEAR + HOUR
    assert every.previous_before(NEW_YEAR + HOUR) == NEW_YEAR
    assert every.previous_before(NEW_YEAR + TICK) == NEW_YEAR
    assert every.previous_before(NEW_YEAR) is None
    assert every.next_after(datetime.max.replace(tzinfo=UTC)) is None


def test_every_without_an_anchor_says_who_fills_it_in() -> None:
    with pytest.raises(ValueError, match="the store fills it in at the first put"):
        Every(60).next_after(NEW_YEAR)
    with pytest.raises(ValueError, match="the store fills it in at the first put"):
        Every(60).previous_before(NEW_YEAR)


def test_an_anchor_is_filled_in_once() -> None:
    anchored = Every(60, jitter=5).anchored(NEW_YEAR)
    assert anchored == Every(60, jitter=5, anchor=NEW_YEAR)
    assert anchored.anchored(NEW_YEAR + HOUR) is anchored
    assert DailyAt(9).anchored(NEW_YEAR) == DailyAt(9)
    both = Every(60).excluding(Every(120))
    assert both.anchored(NEW_YEAR).next_after(NEW_YEAR) == NEW_YEAR + timedelta(minutes=1)


@given(
    st.timedeltas(timedelta(milliseconds=100), timedelta(days=400)),
    st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
)
@settings(max_examples=60)
def test_every_does_not_drift(interval: timedelta, anchor: datetime, start: datetime) -> None:
    every = Every(interval, anchor=anchor)
    found = every.upcoming(start, 4)
    assert all(fire > start and not (fire - anchor) % interval for fire in found)
    for earlier, later in pairwise(found):
        assert later - earlier == interval
        assert every.next_after(later - TICK) == later
        assert every.previous_before(later) == earlier


@given(st.text(max_size=20), st.integers(0, 10_000))
@settings(max_examples=60)
def test_jitter_is_stable_per_tick_and_below_its_bound(seed: str, number: int) -> None:
    every = Every(60, jitter=30, anchor=NEW_YEAR)
    nominal = NEW_YEAR + number * timedelta(minutes=1)
    fire = every.jittered(nominal, seed)
    assert fire == Every(60, jitter=30).jittered(nominal.astimezone(ZoneInfo("Asia/Tokyo")), seed)
    assert nominal <= fire < nominal + timedelta(seconds=30)


def test_jitter_spreads_and_differs_between_schedules() -> None:
    every = Every(60, jitter=30)
    late = [every.jittered(NEW_YEAR, f"schedule {n}") - NEW_YEAR for n in range(1000)]
    assert len(set(late)) > 990
    assert timedelta(seconds=14) < sum(late, timedelta()) / 1000 < timedelta(seconds=16)
    assert every.jittered(NEW_YEAR, "a") == datetime(2026, 1, 1, 0, 0, 23, 454602, tzinfo=UTC)  # must never change
    assert Every(60).jittered(NEW_YEAR, "a") == DailyAt(9).jittered(NEW_YEAR, "a") == NEW_YEAR


@pytest.mark.parametrize(
    "trigger",
    [
        Cron("*/5 * * * *", jitter=3600),
        DailyAt(9, jitter=60),
        Weekly("mon", 9, jitter=60),
        Monthly(1, jitter=60),
        At(NEW_YEAR, jitter=60),
        DailyAt(9, jitter=3600) | DailyAt(9, 5),
        (DailyAt(9) | Cron("*/10 * * * *", jitter=60)) & Cron("* 8-10 * * *", jitter=20),
        Every(60, jitter=30, anchor=NEW_YEAR).excluding(At(NEW_YEAR + timedelta(minutes=3))),
    ],
    ids=str,
)
def test_jitter_keeps_the_order_of_the_ticks_of_every_trigger(trigger: Trigger) -> None:
    fires = trigger.upcoming(NEW_YEAR - TICK, 60)
    moved = [trigger.jittered(fire, "a") for fire in fires]
    assert moved == [trigger.jittered(fire, "a") for fire in fires]
    assert moved != [trigger.jittered(fire, "b") for fire in fires]
    assert moved != fires
    for fire, at, following in zip(fires, moved, [*fires[1:], None], strict=True):
        assert fire <= at <= fire + trigger.spread()
        assert following is None or at < following


def test_a_part_without_jitter_fires_on_time() -> None:
    both = DailyAt(9) | DailyAt(10, jitter=60)
    assert both.spread() == timedelta(minutes=1)
    nine = NEW_YEAR + 9 * HOUR
    assert both.jittered(nine, "a") == nine
    assert both.jittered(nine + HOUR, "a") > nine + HOUR


def test_at_fires_once() -> None:
    at = At(NEW_YEAR.astimezone(ZoneInfo("Asia/Tokyo")))
    assert at.instant.tzinfo is UTC
    assert at.upcoming(NEW_YEAR - HOUR, 5) == [NEW_YEAR]
    assert at.next_after(NEW_YEAR) is None
    assert at.previous_before(NEW_YEAR) is None
    assert at.previous_before(NEW_YEAR + TICK) == NEW_YEAR


def test_exactly_now_means_the_next_one() -> None:
    nine = datetime(2026, 1, 1, 9, tzinfo=UTC)  # a Thursday
    assert DailyAt(9).next_after(nine) == nine + timedelta(days=1)
    assert Weekly("thu", 9).next_after(nine) == nine + timedelta(days=7)
    assert Monthly(1, 9).next_after(nine) == datetime(2026, 2, 1, 9, tzinfo=UTC)


def test_monthly_on_the_31st_leaves_out_short_months_and_minus_one_does_not() -> None:
    assert [fire.month for fire in Monthly(31).upcoming(NEW_YEAR, 7)] == [1, 3, 5, 7, 8, 10, 12]
    assert [fire.day for fire in Monthly(-1).upcoming(NEW_YEAR, 4)] == [31, 28, 31, 30]


def test_weekly_takes_names_and_numbers() -> None:
    assert Weekly("MON") == Weekly("Monday") == Weekly(1) == Weekly(["monday", 1]) == Weekly("1")
    assert Weekly(0) == Weekly(7) == Weekly("sun")
    assert [fire.day for fire in Weekly(("sat", "mon"), 9).upcoming(NEW_YEAR, 3)] == [3, 5, 10]


def test_a_named_trigger_is_its_cron_that_reads_differently() -> None:
    daily = DailyAt(9, 30, tz="Europe/Paris")
    assert daily.cron == Cron("30 9 * * *", "Europe/Paris")
    others: list[Trigger] = [daily.cron]
    assert daily not in others
    assert repr(daily) == ("DailyAt(hour=9, minute=30, second=0, tz='Europe/Paris', jitter=datetime.timedelta(0))")
    assert daily.upcoming(NEW_YEAR, 9) == daily.cron.upcoming(NEW_YEAR, 9)
    assert daily.previous_before(NEW_YEAR) == daily.cron.previous_before(NEW_YEAR)


@pytest.mark.parametrize("trigger", [Cron("0 9 * * *"), DailyAt(9), Weekly("mon", 9), Monthly(1, 9)], ids=str)
def test_the_apps_zone_is_filled_in_where_none_is_named(trigger: Trigger) -> None:
    paris = trigger.in_zone("Europe/Paris")
    assert str(paris) == f"{trigger} Europe/Paris"
    assert paris.in_zone("Asia/Tokyo") is paris
    after, before = paris.next_after(NEW_YEAR), trigger.next_after(NEW_YEAR)
    assert after
    assert before == after + HOUR
    excluding = trigger.excluding(At(NEW_YEAR)).in_zone("Europe/Paris")
    assert excluding.next_after(NEW_YEAR) == after


def test_zones_may_be_given_as_such() -> None:
    assert Cron("0 9 * * *", ZoneInfo("Europe/Paris")) == Cron("0 9 * * *", "Europe/Paris")
    assert Cron("0 9 * * *", UTC).tz == "UTC"


def test_excluding_leaves_out_what_another_fires() -> None:
    weekdays = DailyAt(9).excluding(Weekly(["sat", "sun"], 9))
    assert [fire.day for fire in weekdays.upcoming(NEW_YEAR, 4)] == [1, 2, 5, 6]
    assert weekdays.previous_before(datetime(2026, 1, 5, tzinfo=UTC)) == datetime(2026, 1, 2, 9, tzinfo=UTC)
    but_new_year = weekdays.excluding(At(datetime(2026, 1, 1, 9, tzinfo=UTC)))
    assert [fire.day for fire in but_new_year.upcoming(NEW_YEAR, 3)] == [2, 5, 6]
    assert DailyAt(9).excluding() == DailyAt(9)
    assert DailyAt(9).excluding(Weekly("sun", 10)).upcoming(NEW_YEAR, 9) == DailyAt(9).upcoming(NEW_YEAR, 9)


def test_excluding_keeps_the_jitter() -> None:
    every = Every(60, jitter=30, anchor=NEW_YEAR)
    assert every.excluding(At(NEW_YEAR)).jittered(NEW_YEAR, "a") == every.jittered(NEW_YEAR, "a")


def test_excluding_everything_ends_in_a_clear_answer() -> None:
    assert At(NEW_YEAR).excluding(At(NEW_YEAR)).next_after(NEW_YEAR - HOUR) is None
    nothing = DailyAt(9).excluding(Cron("0 * * * *"))
    assert nothing.next_after(NEW_YEAR) is None
    assert nothing.previous_before(NEW_YEAR) is None


def test_a_trigger_says_whether_it_fires_at_an_instant_of_any_zone() -> None:
    repeated = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Paris"))
    assert DailyAt(2, 30, tz="Europe/Paris").fires_at(repeated)
    assert not DailyAt(2, 30, tz="Europe/Paris").fires_at(repeated.replace(fold=1))


@pytest.mark.parametrize("trigger", [Cron("0 9 * * *"), DailyAt(9), Every(60), At(NEW_YEAR)], ids=str)
def test_a_trigger_is_frozen_and_hashable(trigger: Trigger) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(trigger, next(iter(trigger.__slots__)), None)
    assert {trigger: 1}[Trigger.parse(str(trigger))] == 1


def test_upcoming_gives_no_more_than_asked() -> None:
    assert Cron("* * * * *").upcoming(NEW_YEAR, 0) == Every(60, anchor=NEW_YEAR).upcoming(NEW_YEAR, 0) == []
    assert len(Cron("* * * * *").upcoming(NEW_YEAR, 100)) == 100


def test_days_count_back_from_the_last_day() -> None:
    days = [(fire.month, fire.day) for fire in Cron("0 0 L-3,L * *").upcoming(NEW_YEAR, 4)]
    assert days == [(1, 28), (1, 31), (2, 25), (2, 28)]
    assert [fire.day for fire in Cron("0 0 L-30 * *").upcoming(NEW_YEAR - HOUR, 3)] == [1, 1, 1]
    assert [fire.month for fire in Cron("0 0 L-30 * *").upcoming(NEW_YEAR - HOUR, 3)] == [1, 3, 5]


def test_days_and_months_have_whole_names() -> None:
    assert Cron("0 9 * January-march MONDAY,friday#2").upcoming(NEW_YEAR, 9) == (
        Cron("0 9 * 1-3 1,5#2").upcoming(NEW_YEAR, 9)
    )


@given(st.integers(1, 53), st.integers(1990, 2080))
@settings(max_examples=60)
def test_a_week_is_a_week_of_the_iso_calendar(week: int, year: int) -> None:
    fires = Cron("0 0 * * *", week=week).upcoming(datetime(year, 1, 1, tzinfo=UTC) - TICK, 7)
    assert {fire.isocalendar().week for fire in fires} == {week}
    back = Cron("0 0 * * *", week=week).previous_before(fires[0])
    assert back is not None
    assert back.isocalendar().week == week


def test_every_other_week_and_a_range_of_years() -> None:
    odd = Cron("0 9 * * mon", week="*/2")
    assert [fire.isocalendar().week for fire in odd.upcoming(NEW_YEAR, 3)] == [3, 5, 7]
    years = Cron("0 0 1 1 *", year="2028,2030-2031")
    assert [fire.year for fire in years.upcoming(NEW_YEAR, 9)] == [2028, 2030, 2031]
    assert years.previous_before(NEW_YEAR) is None
    assert [fire.year for fire in Cron("0 0 29 2 *", year="2090-2099").upcoming(NEW_YEAR, 9)] == [2092, 2096]
    a_year = Cron("* * * * * *").excluding(Cron("* * * * * *", year=2026))
    assert a_year.next_after(NEW_YEAR) == datetime(2027, 1, 1, tzinfo=UTC)


def test_each_leaves_out_the_gap_and_fires_repeated_times_twice() -> None:
    each = Cron("30 2 * * *", "Europe/Paris", "each")
    spring, autumn = datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert each.next_after(spring) == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert each.upcoming(autumn, 3) == [first, first + HOUR, first + 25 * HOUR]


def test_w_is_the_nearest_workday_of_the_same_month() -> None:
    days = [(fire.month, fire.day) for fire in Cron("0 0 1W * *").upcoming(NEW_YEAR - HOUR, 6)]
    assert days == [(1, 1), (2, 2), (3, 2), (4, 1), (5, 1), (6, 1)]
    assert Cron("0 0 1W 8 *").next_after(NEW_YEAR) == datetime(2026, 8, 3, tzinfo=UTC)  # the 1st is a Saturday
    assert Cron("0 0 31W 5 *").next_after(NEW_YEAR) == datetime(2026, 5, 29, tzinfo=UTC)  # the 31st is a Sunday
    assert Cron("0 0 31w 2,3 *").next_after(NEW_YEAR) == datetime(2026, 3, 31, tzinfo=UTC)
