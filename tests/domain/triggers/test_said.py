"""What describe() writes can be read where it says all; and what people write instead gets a hint."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.triggers import Cron, DailyAt, Every, Monthly, Trigger, Weekly

SPANS = st.integers(100, 40 * 86_400_000).map(lambda number: timedelta(milliseconds=number))


@given(interval=SPANS, share=st.integers(0, 99))
def test_an_interval_is_read_as_it_is_described(interval: timedelta, share: int) -> None:
    trigger = Every(interval, jitter=timedelta(milliseconds=(interval * share / 100) // timedelta(milliseconds=1)))
    assert Trigger.parse(trigger.describe()) == trigger


@given(hour=st.integers(0, 23), minute=st.integers(0, 59), second=st.integers(0, 59))
def test_a_time_of_day_is_read_as_it_is_described(hour: int, minute: int, second: int) -> None:
    daily = DailyAt(hour, minute, second)
    assert Trigger.parse(daily.describe()) == daily


@pytest.mark.parametrize("days", ["fri", ["mon", "thu"], ["mon", "wed", "sun"]])
def test_weekdays_are_read_as_they_are_described(days: Any) -> None:
    assert Trigger.parse(Weekly(days, 9, 30).describe()) == Weekly(days, 9, 30)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("every 6 hours", Every(hours=6)),
        ("every hour", Every(hours=1)),
        ("Every 1 Hour 30 Minutes jitter 30s", Every(5400, jitter=30)),
        ("every day at 9:30 Europe/Paris", DailyAt(9, 30, tz="Europe/Paris")),
        ("every Monday and Friday at 09:00", Weekly(["mon", "fri"], 9)),
    ],
)
def test_words_are_read(text: str, meant: Trigger) -> None:
    assert Trigger.parse(text) == meant


@pytest.mark.parametrize("text", ["every 5 parsecs", "every up to late", "every minute up to late", "every at 9:00"])
def test_other_words_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="expected such as: every 15m"):
        Trigger.parse(text)


def test_an_interval_in_words_has_an_end() -> None:
    with pytest.raises(ValueError, match="too long"):
        Trigger.parse("every 999999999 days 999999999 days 999999999 days")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("0 9 * * fridays", "write fri"),
        ("0 9 1 januar *", "write jan"),
        ("0 9 last * *", "the last day of the month is L"),
        ("0 9 * * last", "the last Friday of the month is 5L"),
        ("0 0 0 ? * L", "weekday field 'L': say the last of which weekday"),
        ("0 0 0 1 * fridays", "weekday field 'fridays'"),
    ],
)
def test_a_cron_line_with_words_of_other_systems_gets_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        Trigger.parse(text)


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: DailyAt("09:30"), r"write DailyAt\(9, 30\)"),  # type: ignore[arg-type]
        (lambda: DailyAt(time(9, 30, 15)), r"write DailyAt\(9, 30, 15\)"),  # type: ignore[arg-type]
        (lambda: Weekly("mon", "09:30"), r"write Weekly\('mon', 9, 30\)"),  # type: ignore[arg-type]
        (lambda: Monthly(-1, time(9, 30, 15)), r"write Monthly\(-1, 9, 30\)"),  # type: ignore[arg-type]
    ],
)
def test_a_time_where_an_hour_is_expected_is_told_how_to_write_it(make: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        make()


def test_what_two_triggers_have_in_common_is_an_exclusion_of_an_exclusion() -> None:
    hourly, nine = Cron("0 * * * *"), DailyAt(9)
    both = hourly.excluding(hourly.excluding(nine))
    start = datetime(2026, 11, 15, tzinfo=UTC)
    assert both.upcoming(start, 2) == nine.upcoming(start, 2)


def test_a_trigger_without_itself_never_fires_and_nobody_looks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    every = Every(1, anchor=datetime(2026, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(Every, "next_after", lambda *_: pytest.fail("looked"))
    assert every.excluding(DailyAt(9), every).next_after(datetime(2026, 11, 15, tzinfo=UTC)) is None
