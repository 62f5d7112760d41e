"""Durations and instants on wall clocks, as people type and read them."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from rota.domain.triggers.durations import parse_duration
from rota.errors import InvalidOptions


def seconds_of(text: str | None, option: str) -> float | None:
    """Return `90`, `90s`, `5m`, `2h` or `1d` in seconds; None stays None."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return parse_duration(text).total_seconds()
    except ValueError as error:
        raise InvalidOptions(f"{option}: {error}") from None


YEARS = range(1970, 9000)


def read_instant(text: str, option: str, zone: ZoneInfo) -> datetime:
    """Read ISO 8601; `zone` is the zone of a text that names none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidOptions(f"{option} {text}: not an ISO 8601 time; write it like 2026-11-15T09:00") from None
    if moment.year not in YEARS:
        raise InvalidOptions(f"{option} {text}: a year from {YEARS.start} to {YEARS.stop - 1}")
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def read_until(text: str, option: str, zone: ZoneInfo, now: float) -> datetime:
    """Read when something ends: `2h` is 2 hours after `now`, anything else an instant."""
    if re.fullmatch(r"[\d.]+\s*[a-z]*", text):
        return datetime.fromtimestamp(now + (seconds_of(text, option) or 0.0), UTC)
    return read_instant(text, option, zone)


def read_end(text: str, option: str, zone: ZoneInfo, now: float) -> datetime:
    """Read the end of a range: a date alone means the end of that day, for today the time until now."""
    begins = read_instant(text, option, zone)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return begins
    midnight = datetime.combine(day + timedelta(days=1), time(), zone).astimezone(UTC)
    today = datetime.fromtimestamp(now, UTC)
    last = midnight - timedelta(microseconds=1)
    return min(last, today) if begins <= today else last


def clock(instant: float, now: float) -> str:
    """Return `instant` in local time, as in logs: `Mon 16 Nov 09:00+01:00`; with seconds and year where needed."""
    moment, today = datetime.fromtimestamp(instant).astimezone(), datetime.fromtimestamp(now).astimezone()
    return f"{_day_and_time(moment, today)}{moment.isoformat()[-6:]}"


def wall(instant: float, zone: ZoneInfo, now: float) -> str:
    """Return `instant` in `zone`: `Mon 16 Nov 09:00 CET`; with seconds and year where needed."""
    moment, today = datetime.fromtimestamp(instant, zone), datetime.fromtimestamp(now, zone)
    return f"{_day_and_time(moment, today)} {moment:%Z}"


def _day_and_time(moment: datetime, today: datetime) -> str:
    year = "" if moment.year == today.year else f" {moment:%Y}"
    seconds = f":{moment:%S}" if moment.second else ""
    return f"{moment:%a %d %b}{year} {moment:%H:%M}{seconds}"
