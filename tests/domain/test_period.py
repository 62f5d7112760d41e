"""Periods: names that sort, that hold every instant once, and that people can write."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.period import Period

PARIS = ZoneInfo("Europe/Paris")
ZONES = ("UTC", "Europe/Paris", "America/Santiago", "Asia/Kolkata", "Pacific/Apia", "Africa/Cairo")


@pytest.mark.parametrize(
    ("period", "name"),
    [
        (Period.hour("Europe/Paris"), "2026-11-15T00+0100"),
        (Period.day("Europe/Paris"), "2026-11-15"),
        (Period.day(), "2026-11-14"),
        (Period.week("Europe/Paris"), "2026-W46"),
        (Period.month("Europe/Paris"), "2026-11"),
    ],
)
def test_an_instant_lies_in_the_period_of_its_zone(period: Period, name: str) -> None:
    assert period.name(datetime(2026, 11, 15, 0, 30, tzinfo=PARIS)) == name


def test_the_repeated_hour_has_two_names_and_the_days_of_change_their_own_length() -> None:
    hour, day = Period.hour("Europe/Paris"), Period.day("Europe/Paris")
    twice = [hour.name(datetime(2026, 10, 25, at, 30, tzinfo=UTC)) for at in (0, 1)]
    assert twice == ["2026-10-25T02+0200", "2026-10-25T02+0100"]
    lengths = [(lambda b: b[1] - b[0])(day.bounds(name)) for name in ("2026-03-29", "2026-10-25", "2026-11-15")]
    assert lengths == [timedelta(hours=23), timedelta(hours=25), timedelta(hours=24)]


def test_a_year_ends_with_the_week_of_the_next() -> None:
    assert Period.week().name(datetime(2024, 12, 31, tzinfo=UTC)) == "2025-W01"
    assert Period.week().bounds("2025-W01")[0] == datetime(2024, 12, 30, tzinfo=UTC)


@given(
    st.sampled_from(["hour", "day", "week", "month"]),
    st.sampled_from(ZONES),
    st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)),
)
def test_every_instant_lies_within_the_bounds_of_its_name(unit: str, tz: str, instant: datetime) -> None:
    period = Period(unit, tz)  # type: ignore[arg-type]
    begin, end = period.bounds(period.name(instant))
    assert begin <= instant < end
    assert period.name(begin) == period.name(instant) == period.name(end - timedelta(microseconds=1))
    assert period.name(end) > period.name(instant) or unit == "hour"


@pytest.mark.parametrize(
    ("period", "name"),
    [
        (Period.day(), "2026-02-30"),
        (Period.day(), "15.11.2026"),
        (Period.day(), "\u0662\u0660\u0662\u0666-11-15"),
        (Period.week(), "2026-W54"),
        (Period.month(), "2026-13"),
        (Period.hour(), "2026-11-15T25+0000"),
        (Period.hour(), "2026-11-15T09"),
    ],
)
def test_a_name_that_no_period_has_is_refused_with_an_example(period: Period, name: str) -> None:
    with pytest.raises(ValueError, match=f"is no {period.unit}: .*write it like "):
        period.check(name)


def test_an_unknown_unit_or_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="choose hour, day, week or month"):
        Period("year")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Europe/Paris"):
        Period.day("Europe/Pariss")


def test_an_hour_has_one_name_in_its_zone() -> None:
    with pytest.raises(ValueError, match=r"no hour of Europe/Paris; that one is 2026-11-15T01\+0100"):
        Period.hour("Europe/Paris").check("2026-11-15T09+0900")
