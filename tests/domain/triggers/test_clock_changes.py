"""Clock changes by name: what fires when the clock jumps, and what people expect of it."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from rota.domain.triggers import Cron, DailyAt

# zone, cron, start, the next fires; all on the zone's wall clock, with the offset where it is needed.
CASES = {
    "Cairo leaves out the midnight hour: a midnight job fires when the clock is there again": (
        "Africa/Cairo", "0 0 * * *", "2026-04-23 12:00+02:00",
        ["2026-04-24 01:00+03:00", "2026-04-25 00:00+03:00"],
    ),
    "Cairo, later in the missing hour: the same moment": (
        "Africa/Cairo", "45 0 * * *", "2026-04-23 12:00+02:00",
        ["2026-04-24 01:00+03:00", "2026-04-25 00:45+03:00"],
    ),
    "Cairo repeats the hour before midnight: once, the first time": (
        "Africa/Cairo", "30 23 * * *", "2026-10-29 12:00+03:00",
        ["2026-10-29 23:30+03:00", "2026-10-30 23:30+02:00"],
    ),
    "Santiago leaves out midnight": (
        "America/Santiago", "0 0 * * *", "2026-09-05 12:00-04:00",
        ["2026-09-06 01:00-03:00", "2026-09-07 00:00-03:00"],
    ),
    "Santiago, every hour: the missing one is no hour": (
        "America/Santiago", "0 * * * *", "2026-09-05 22:30-04:00",
        ["2026-09-05 23:00-04:00", "2026-09-06 01:00-03:00", "2026-09-06 02:00-03:00"],
    ),
    "Lord Howe moves by half an hour: 2:15 is in the gap": (
        "Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00+10:30",
        ["2026-10-04 02:30+11:00", "2026-10-05 02:15+11:00"],
    ),
    "Lord Howe: every half hour is every half hour of real time": (
        "Australia/Lord_Howe", "*/30 * * * *", "2026-10-04 01:00+10:30",
        ["2026-10-04 01:30+10:30", "2026-10-04 02:30+11:00", "2026-10-04 03:00+11:00"],
    ),
    "Lord Howe repeats half an hour": (
        "Australia/Lord_Howe", "*/15 * * * *", "2026-04-05 01:30+11:00",
        ["2026-04-05 01:45+11:00", "2026-04-05 01:30+10:30", "2026-04-05 01:45+10:30", "2026-04-05 02:00+10:30"],
    ),
    "Troll leaves out two hours: 1:30 and 2:30 fall together": (
        "Antarctica/Troll", "30 1,2 * * *", "2026-03-28 12:00+00:00",
        ["2026-03-29 03:00+02:00", "2026-03-30 01:30+02:00"],
    ),
    "Troll repeats two hours: once each": (
        "Antarctica/Troll", "30 1,2 * * *", "2026-10-24 12:00+02:00",
        ["2026-10-25 01:30+02:00", "2026-10-25 02:30+02:00", "2026-10-26 01:30+00:00"],
    ),
    "Apia had no 30 December 2011: no fire for a date that was not": (
        "Pacific/Apia", "0 9 * * *", "2011-12-28 12:00-10:00",
        ["2011-12-29 09:00-10:00", "2011-12-31 09:00+14:00", "2012-01-01 09:00+14:00"],
    ),
    "Apia, every six hours across the missing day": (
        "Pacific/Apia", "0 */6 * * *", "2011-12-29 12:00-10:00",
        ["2011-12-29 18:00-10:00", "2011-12-31 00:00+14:00"],
    ),
    "Pyongyang's last half hour of 4 May 2018 was left out: it fires at midnight": (
        "Asia/Pyongyang", "45 23 * * *", "2018-05-04 12:00+08:30",
        ["2018-05-05 00:00+09:00", "2018-05-05 23:45+09:00"],
    ),
    "St. John's went back to the day before: midnight once": (
        "America/St_Johns", "0 0 * * *", "2010-11-06 12:00-02:30",
        ["2010-11-07 00:00-02:30", "2010-11-08 00:00-03:30"],
    ),
    "seconds follow the same rules": (
        "Europe/Paris", "*/30 30 2 * * *", "2026-03-28 12:00+01:00",
        ["2026-03-29 03:00+02:00", "2026-03-30 02:30+02:00", "2026-03-30 02:30:30+02:00"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("zone", "expr", "start", "expected"), CASES.values(), ids=CASES)
def test_what_fires_at_a_clock_change(zone: str, expr: str, start: str, expected: list[str]) -> None:
    cron = Cron(expr, zone)
    wanted = [datetime.fromisoformat(text) for text in expected]
    assert all(instant.utcoffset() == instant.astimezone(ZoneInfo(zone)).utcoffset() for instant in wanted)
    assert cron.upcoming(datetime.fromisoformat(start), len(wanted)) == wanted
    at: datetime | None = wanted[-1]
    for instant in reversed(wanted[:-1]):
        assert at
        at = cron.previous_before(at)
        assert at == instant


def test_skip_leaves_out_what_falls_into_the_gap() -> None:
    cron = Cron("30 2 * * *", "Europe/Paris", dst="skip")
    assert cron.next_after(utc(2026, 3, 28, 12)) == utc(2026, 3, 30, 0, 30)
    assert cron.previous_before(utc(2026, 3, 30)) == utc(2026, 3, 28, 1, 30)
    assert cron.upcoming(utc(2026, 10, 24, 12), 2) == [utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30)]


def test_twice_fires_both_times_and_still_at_the_end_of_the_gap() -> None:
    cron = Cron("30 2 * * *", "Europe/Paris", dst="twice")
    autumn = [utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30), utc(2026, 10, 26, 1, 30)]
    assert cron.upcoming(utc(2026, 10, 24, 12), 3) == autumn
    assert cron.previous_before(autumn[2]) == autumn[1]
    assert cron.previous_before(autumn[1]) == autumn[0]
    assert cron.next_after(utc(2026, 3, 28, 12)) == utc(2026, 3, 29, 1)


def test_a_time_that_is_always_in_the_gap_never_fires_and_does_not_search_for_ever() -> None:
    cron = Cron("30 2 * 3 0L", "Europe/Paris", dst="skip")
    assert cron.next_after(utc(2026, 1, 1)) is None
    assert Cron("*/30 2 * 3 0L", "Europe/Paris").next_after(utc(2026, 1, 1)) is None
    assert cron.previous_before(utc(2026, 1, 1)) == utc(1980, 3, 30, 1, 30)  # that year it changed in April


def test_a_start_in_the_second_pass_of_the_repeated_hour_does_not_go_back() -> None:
    second_pass = datetime(2026, 10, 25, 2, 10, fold=1, tzinfo=ZoneInfo("Europe/Paris"))
    assert DailyAt(2, 30, tz="Europe/Paris").next_after(second_pass) == utc(2026, 10, 26, 1, 30)
    assert Cron("*/30 * * * *", "Europe/Paris").next_after(second_pass) == utc(2026, 10, 25, 1, 30)


def test_a_zone_of_odd_seconds() -> None:
    """Monrovia was 44 minutes and 30 seconds behind until 1972."""
    cron = Cron("0 12 * * *", "Africa/Monrovia")
    assert cron.upcoming(utc(1972, 1, 6), 2) == [utc(1972, 1, 6, 12, 44, 30), utc(1972, 1, 7, 12)]


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
