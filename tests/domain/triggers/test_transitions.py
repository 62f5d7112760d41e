"""Three days on either side of every clock change, held to the plain answers of `oracle`."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rota.domain.triggers import Cron, DailyAt
from tests.domain.triggers.oracle import SECOND, changes, distinct_zones, fires, instants, local

AROUND = timedelta(days=3)
SAMPLE = [
    "Africa/Cairo",
    "Africa/Monrovia",
    "America/Santiago",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Pacific/Apia",
]


@pytest.mark.parametrize("name", SAMPLE)
def test_no_change_of_the_sample_upsets_the_engine(name: str) -> None:
    check_changes(name, 2000, 2030)


@pytest.mark.soak
@pytest.mark.parametrize("name", distinct_zones())
def test_no_change_of_any_zone_upsets_the_engine(name: str) -> None:
    check_changes(name, 1970, 2100)


def check_changes(name: str, first: int, last: int) -> None:
    for change in changes(name, first, last):
        for expr in ("*/30 1-4,23 * * *", "10 */3 * * *"):
            check_window(expr, name, "vixie", change)
        for expr in daily_times(name, change):
            for dst in ("vixie", "skip", "twice"):
                check_window(expr, name, dst, change)


def daily_times(name: str, change: datetime) -> list[str]:
    """A daily time before, at, inside and after the readings that the change left out or repeated."""
    zone = ZoneInfo(name)
    before, after = local(change - SECOND, zone) + SECOND, local(change, zone)
    edges = sorted((before, after))
    inside = edges[0] + (edges[1] - edges[0]) / 2
    times = {edges[0] - timedelta(minutes=1), edges[0], inside, edges[1] - timedelta(minutes=1), edges[1]}
    return sorted({f"{time.minute} {time.hour} * * *" for time in times})


def check_window(expr: str, name: str, dst: str, change: datetime) -> None:
    cron = Cron(expr, name, dst)
    start, end = change - AROUND, change + AROUND
    expected = fires(expr, ZoneInfo(name), start, end, dst)
    context = f"{cron} around {change}"
    found = cron.upcoming(start, len(expected) + 1)
    assert found[:-1] == expected, context
    assert found[-1] > end, context
    at = end + SECOND
    for fire in reversed(expected):
        assert cron.previous_before(at) == fire, context
        at = fire
    for start in (change - 2 * SECOND, change - SECOND, change, change + SECOND):
        assert cron.next_after(start) == next(fire for fire in found if fire > start), context


@pytest.mark.parametrize("name", SAMPLE)
def test_a_daily_time_fires_once_for_every_date_there_is(name: str) -> None:
    for change in changes(name, 1970, 2030):
        check_dates(name, change)


@pytest.mark.soak
@pytest.mark.parametrize("name", distinct_zones())
def test_a_daily_time_fires_once_for_every_date_there_is_in_any_zone(name: str) -> None:
    for change in changes(name, 1970, 2100):
        check_dates(name, change)


def check_dates(name: str, change: datetime) -> None:
    """Between two times half a day away from it, on quiet days, it fires as often as it has dates."""
    zone = ZoneInfo(name)
    for expr in daily_times(name, change):
        minute, hour = (int(word) for word in expr.split()[:2])
        first, last = (local(change + side * AROUND, zone).replace(hour=(hour + 12) % 24) for side in (-1, 1))
        start, end = instants(first, zone)[0], instants(last, zone)[0]
        dates = {local(start + timedelta(hours=hours), zone).date() for hours in range(24 * 8)}
        wanted = [date for date in dates if first.date() < date <= last.date()]
        if hour >= 12:
            wanted = [date for date in dates if first.date() <= date < last.date()]
        trigger = DailyAt(hour, minute, tz=name)
        found = [fire for fire in trigger.upcoming(start, 9) if fire <= end]
        assert len(found) == len(wanted), f"{trigger} around {change}"


def test_the_changes_are_found() -> None:
    assert datetime(2026, 3, 29, 1, tzinfo=UTC) in changes("Europe/Paris")
    assert len(distinct_zones()) > 300
