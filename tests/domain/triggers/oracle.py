"""Slow and plain answers to hold the engine to: wall clock readings from cronsim without a zone (where it has no
clock changes to trip over), turned into instants with the `fold` of PEP 495, one reading at a time."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from itertools import takewhile
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fires(expr: str, zone: ZoneInfo, start: datetime, end: datetime, dst: str = "vixie") -> list[datetime]:
    """Every fire strictly after `start`, up to and including `end`."""
    minute, hour = expr.split()[-5:-3]
    wild = minute.startswith("*") or hour.startswith("*")
    found: set[datetime] = set()
    for reading in readings(expr, local(start, zone) - 26 * 60 * 60 * SECOND, local(end, zone) + DAY):
        shown = instants(reading, zone)
        if wild or dst == "each":
            found.update(shown)
        elif shown:
            found.update(shown if dst == "twice" else shown[:1])
        elif dst != "skip":
            gap_end = change_near(reading, zone)
            if not left_out(reading, gap_end, zone):
                found.add(gap_end)
    return sorted(fire for fire in found if start < fire <= end)


@lru_cache(maxsize=16)
def readings(expr: str, start: datetime, end: datetime) -> list[datetime]:
    return list(takewhile(lambda reading: reading <= end, CronSim(expr, start - SECOND)))


def local(instant: datetime, zone: ZoneInfo) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def instants(reading: datetime, zone: ZoneInfo) -> list[datetime]:
    """The instants at which the zone's clocks show a reading: none, one or two."""
    both = {reading.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(instant for instant in both if local(instant, zone) == reading)


def change_near(reading: datetime, zone: ZoneInfo) -> datetime:
    """The clock change that left out a reading."""
    before, after = (reading.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (1, 0))
    return first_change(before, after, zone)


def left_out(reading: datetime, gap_end: datetime, zone: ZoneInfo) -> bool:
    """The zone's calendar has no such date."""
    return local(gap_end - SECOND, zone).date() < reading.date() < local(gap_end, zone).date()


def first_change(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    offset = low.astimezone(zone).utcoffset()
    a, b = (low - EPOCH) // SECOND, (high - EPOCH) // SECOND
    while b - a > 1:
        middle = (a + b) // 2
        if (EPOCH + middle * SECOND).astimezone(zone).utcoffset() == offset:
            a = middle
        else:
            b = middle
    return EPOCH + b * SECOND


@lru_cache(maxsize=512)
def changes(name: str, first: int = 1970, last: int = 2100) -> list[datetime]:
    """Every clock change of a zone, found by looking at noon and midnight of every day."""
    zone = ZoneInfo(name)
    found: list[datetime] = []
    at, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last, 12, 31, tzinfo=UTC)
    offset = at.astimezone(zone).utcoffset()
    while at < end:
        then = at + DAY / 2
        now = then.astimezone(zone).utcoffset()
        if now != offset:
            found.append(first_change(at, then, zone))
            offset = now
        at = then
    return found


def distinct_zones() -> list[str]:
    """One name for each set of rules."""
    names: dict[bytes, str] = {}
    for name in sorted(available_timezones()):
        *folders, file = name.split("/")
        source = resources.files("tzdata").joinpath("zoneinfo", *folders, file)
        if source.is_file():
            names.setdefault(source.read_bytes(), name)
    return sorted(names.values())
