"""Celery's crontab: its grammar, when it fires by our reading of it, and its own engine if Celery can be imported."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from rota.domain.triggers import Trigger
from rota.domain.triggers.cron_fields import MONTH_NAMES, WEEKDAY_NAMES
from rota.movein.fields import CronSets
from rota.movein.fires import with_named
from rota.movein.plan import Fires, Row, refuse

FIELDS = {"minute": (60, 0), "hour": (24, 0), "day_of_month": (31, 1), "month_of_year": (12, 1), "day_of_week": (7, 0)}
"""How many numbers a field has, and the first."""
OURS = {"minute": "minute", "hour": "hour", "day": "day_of_month", "month": "month_of_year", "weekday": "day_of_week"}
RANGE_STEPS = re.compile(r"(\w+?)-(\w+)/(\w+)?")
RANGE = re.compile(r"(\w+?)-(\w+)")
STAR_STEPS = re.compile(r"\*/(\w+)?")
LENGTH_LIMIT = 4096
DSTS = ("vixie", "skip", "twice", "each")


def crontab_row(row: Row, fields: dict[str, str], now: datetime) -> Row:
    """Return the row with the trigger of a crontab, and its differences; or refused, with the reason."""
    try:
        sets = read_sets(fields)
        trigger, naive = sets.trigger(row.tz), sets.trigger("UTC")
        candidates = [sets.trigger(row.tz, dst) for dst in DSTS]
    except ValueError as error:
        return refuse(row, str(error))
    zone = ZoneInfo(row.tz)
    model, engine = celery_model(naive, zone), celery_engine(fields, zone)
    return with_named(replace(row, trigger=trigger, model=model, engine=engine), now, candidates)


def read_sets(fields: dict[str, str]) -> CronSets:
    """Return the numbers of the five fields. A day has to match the day of month *and* the weekday."""
    found = {name: read_field(name, text) for name, text in fields.items()}
    return CronSets(
        minutes=found["minute"],
        hours=found["hour"],
        days=found["day_of_month"],
        months=found["month_of_year"],
        weekdays=found["day_of_week"],
        texts={ours: fields[theirs] for ours, theirs in OURS.items()},
    )


def read_field(name: str, text: str) -> frozenset[int]:
    """Return the numbers of a field as Celery reads them: ranges wrap, and steps go along the wrap."""
    count, low = FIELDS[name]
    if len(text) > LENGTH_LIMIT:
        raise ValueError(f"{name} has more than {LENGTH_LIMIT} characters")
    found: set[int] = set()
    try:
        for part in text.split(","):
            found |= set(_part(part, count, low))
    except (ValueError, IndexError) as error:
        raise ValueError(f"Celery refuses {name}={text!r}: {error}") from None
    return frozenset(found)


def _part(part: str, count: int, low: int) -> list[int]:
    if not part:
        raise ValueError("a comma has nothing on one side")
    stepped = RANGE_STEPS.match(part)
    if stepped:
        return _span(stepped[1], stepped[2], count, low)[:: _step(stepped[3])]
    ranged = RANGE.match(part)
    if ranged:
        return _span(ranged[1], ranged[2], count, low)
    starred = STAR_STEPS.match(part)
    if starred:
        return list(range(low, low + count))[:: _step(starred[1])]
    return list(range(low, low + count)) if part == "*" else [_number(part, count, low)]


def _step(text: str | None) -> int:
    step = int(text or "0")
    if step <= 0:
        raise ValueError("a step is a number above 0")
    return step


def _span(first: str, last: str, count: int, low: int) -> list[int]:
    start, end = _number(first, count, low), _number(last, count, low)
    if end < start:
        return [*range(start, low + count), *range(low, end + 1)]
    return list(range(start, end + 1))


def _number(word: str, count: int, low: int) -> int:
    """Return a number, or a name by its first three letters: of a month, else of a weekday, in any field."""
    try:
        value = int(word)
    except ValueError:
        short = word[:3].lower()
        if short not in (*MONTH_NAMES, *WEEKDAY_NAMES):
            raise ValueError(f"{word!r} is no number and no name") from None
        value = MONTH_NAMES.index(short) + 1 if short in MONTH_NAMES else WEEKDAY_NAMES.index(short)
    if not low <= value < low + count:
        raise ValueError(f"{value} is not from {low} to {low + count - 1}")
    return value


def celery_model(naive: Trigger, zone: ZoneInfo) -> Fires:
    """Return when beat fires: it goes from reading to reading of the wall clock. A reading inside a gap is late by the
    gap, and the second pass of a repeated hour is left out. `naive` has the readings as UTC."""

    def fires(start: datetime, end: datetime) -> Iterator[datetime]:
        last = start
        while True:
            reading = naive.next_after(last.astimezone(zone).replace(tzinfo=UTC))
            if reading is None:
                return
            fire = reading.replace(tzinfo=zone, fold=0).astimezone(UTC)
            if fire > end:
                return
            if fire > last:
                yield fire
                last = fire
            else:  # from inside the second pass of a repeated hour
                last = reading.replace(tzinfo=zone, fold=1).astimezone(UTC)

    return fires


def celery_engine(fields: dict[str, str], zone: ZoneInfo) -> Fires | None:
    """Return when Celery's own crontab says that it is due, for a beat that is never late; None without Celery."""
    if find_spec("celery") is None:
        return None

    def fires(start: datetime, end: datetime) -> Iterator[datetime]:
        from celery.schedules import crontab  # type: ignore[import-untyped]

        last = start.astimezone(zone)
        schedule: Any = crontab(**fields, nowfun=lambda: last)
        schedule.__dict__.update(tz=zone, utc_enabled=True)  # it takes them from an app otherwise
        while True:
            fire = last.astimezone(UTC) + schedule.remaining_estimate(last)
            if fire > end or fire <= last.astimezone(UTC):
                return
            yield fire
            last = fire.astimezone(zone)

    return fires
