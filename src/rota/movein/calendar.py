"""OnCalendar: the grammar of systemd's calendar events, and `systemd-analyze calendar` as its own engine."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct

from rota.domain.triggers.zones import zone_name
from rota.errors import InvalidOptions
from rota.movein.fields import CronSets, spell
from rota.movein.fires import clock_changes
from rota.movein.plan import Fires

SHORTHANDS = {
    "minutely": "*-*-* *:*:00",
    "hourly": "*-*-* *:00:00",
    "daily": "*-*-* 00:00:00",
    "weekly": "Mon *-*-* 00:00:00",
    "monthly": "*-*-01 00:00:00",
    "quarterly": "*-01,04,07,10-01 00:00:00",
    "yearly": "*-01-01 00:00:00",
    "annually": "*-01-01 00:00:00",
    "anually": "*-01-01 00:00:00",
    **dict.fromkeys(
        ("semiannually", "semi-annually", "biannually", "bi-annually"),
        "*-01,07-01 00:00:00",
    ),
}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
YEARS = 1970, 2099
LONGEST = 500
"""Characters of one calendar event that are read at most."""
PART = re.compile(r"(\d{1,4})(?:\.\.(\d{1,4}))?(?:/(\d{1,4}))?")
DATE = re.compile(r"(?:([\d*,./]+)-)?([\d*,./]+)([-~])([\d*,./]+)")
TIME = re.compile(r"([\d*,./]+):([\d*,./]+)(?::([\d*,./]+))?")
ELAPSE = re.compile(r"(?:elapse|Iter\. #\d+|\(in UTC\)): \w{3} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC")
DAY = timedelta(days=1)
FIRST_PAGE, LAST_PAGE = 20, 1000
"""Fires that one call of systemd-analyze computes: each call twice as many, since those of a rare event take long."""


class Event(Struct, frozen=True):
    """One calendar event."""

    sets: CronSets
    tz: str
    text: str
    """The event without its zone."""


def read_event(text: str, tz: str | None) -> Event:
    """Return a calendar event; ValueError if systemd refuses it, or rota has no trigger for it. `tz` is the zone of one
    that names none."""
    if len(text) > LONGEST:
        raise ValueError(f"a calendar event of more than {LONGEST} characters")
    words, named = _without_zone(text.split())
    zone = named or tz
    if zone is None:
        raise ValueError(f"which zone? {text!r} names none, and nothing says the zone of its machine: give --tz")
    if not words:
        raise ValueError("systemd itself refuses an empty calendar event")
    plain = " ".join(words)
    if len(words) == 1 and words[0].lower() in SHORTHANDS:
        words = SHORTHANDS[words[0].lower()].split()
    if words[0].startswith("@"):
        raise ValueError(f"{words[0]} is one instant: submit with using(at=…)")
    weekdays = _weekdays(words.pop(0)) if words[0][0].isalpha() else frozenset(range(7))
    year, months, days, last_day = _date(words.pop(0) if words and ":" not in words[0] else "*-*-*")
    hours, minutes, seconds = _time(words.pop(0) if words else "00:00:00")
    if words:
        raise ValueError(f"systemd itself refuses {text!r}: what is {words[0]!r}?")
    sets = CronSets(
        minutes=minutes,
        hours=hours,
        seconds=seconds,
        months=months,
        days=days,
        last_day=last_day,
        weekdays=weekdays,
        year=year,
    )
    return Event(sets, zone, plain)


def _without_zone(words: list[str]) -> tuple[list[str], str | None]:
    """Return the words before the zone, and the zone: the last word, if it is none of an event."""
    last = words[-1] if words else ""
    if len(words) < 2 or not last[0].isalpha():
        return words, None
    return words[:-1], zone_name(last) or "UTC"


def _weekdays(text: str) -> frozenset[int]:
    """Return weekdays as cron counts them. `Sat..Mon` is refused: systemd's week ends on Sunday."""
    found: set[int] = set()
    for item in text.split(","):
        first, _, last = item.replace("-", "..").partition("..")
        low, high = _weekday(first), _weekday(last or first)
        if low > high:
            raise ValueError(f"systemd itself refuses {item!r}: its week ends on Sunday")
        found |= {(day + 1) % 7 for day in range(low, high + 1)}
    return frozenset(found)


def _weekday(word: str) -> int:
    found = [number for number, name in enumerate(WEEKDAYS) if word.lower() in (name, name[:3])]
    if not found:
        raise ValueError(f"systemd itself refuses {word!r}: it is no weekday")
    return found[0]


def _date(text: str) -> tuple[str, frozenset[int], frozenset[int], bool]:
    """Return the years as cron writes them, the months, the days, and whether the last day of a month is meant."""
    found = DATE.fullmatch(text)
    if found is None:
        raise ValueError(f"systemd itself refuses {text!r}: it is no date")
    years, months, end, days = found.groups()
    year = "" if years in (None, "*") else spell(_numbers(years, *YEARS), *YEARS)
    if end == "~":
        if days not in ("1", "01"):
            raise ValueError(f"~{days} counts from the end of a month: write `L-2` or `5L` of rota's cron yourself")
        return year, _numbers(months, 1, 12), frozenset(), True
    return year, _numbers(months, 1, 12), _numbers(days, 1, 31), False


def _time(text: str) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
    found = TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"systemd itself refuses {text!r}: it is no time")
    hours, minutes, seconds = found.groups()
    if "." in (seconds or "").replace("..", ""):
        raise ValueError(f"{text!r} has parts of a second; rota fires at whole ones")
    numbers = _numbers(hours, 0, 23), _numbers(minutes, 0, 59), _numbers(seconds or "0", 0, 59)
    for field, count in ((hours, 24), (minutes, 60), (seconds or "0", 60)):
        if any(_overshoots(item, count) for item in field.split(",")):
            raise ValueError(f"some versions of systemd lose times of {field!r}: write the numbers out")
    return numbers


def _overshoots(item: str, count: int) -> bool:
    """Return whether a step without an end leaves a field of `count` numbers beyond its first one, as hours `0/10` do.

    systemd 252 counts 30:00 then, which is 06:00, and so forgets the midnight of some days.
    """
    part = PART.fullmatch(item)
    if part is None or part[2] or not part[3]:
        return False
    first, step = int(part[1]), int(part[3])
    return first + (count - 1 - first) // step * step + step - count > first


def _numbers(text: str, low: int, high: int) -> frozenset[int]:
    if text == "*":
        return frozenset(range(low, high + 1))
    found: set[int] = set()
    for item in text.split(","):
        part = PART.fullmatch(item)
        if part is None:
            raise ValueError(f"systemd itself refuses {item!r}")
        first, last, step = (None if each is None else int(each) for each in part.groups())
        assert first is not None
        end = high if last is None and step is not None else first if last is None else last
        if (low, high) == YEARS and not low <= first <= high:
            raise ValueError(f"{item!r}: write years with four digits, from {low} to {high}")
        beyond = last is None and first + (step or 0) > high
        if beyond or not low <= first <= end <= high or step == 0:
            raise ValueError(f"systemd itself refuses {item!r}: numbers from {low} to {high}, upwards")
        found |= set(range(first, end + 1, step or 1))
    return frozenset(found)


def calendar_model(event: Event) -> Fires:
    """Return when systemd fires: it goes from reading to reading of the wall clock. A reading inside a gap is left out,
    and so is the second pass of a repeated hour."""
    naive, zone = event.sets.trigger("UTC"), ZoneInfo(event.tz)

    def fires(start: datetime, end: datetime) -> Iterator[datetime]:
        last = start
        reading = naive.next_after(start.astimezone(zone).replace(tzinfo=UTC))
        while reading is not None:
            fire = reading.replace(tzinfo=zone, fold=0).astimezone(UTC)
            if fire > end:
                return
            if fire > last and fire.astimezone(zone).replace(tzinfo=UTC) == reading:
                yield fire
                last = fire
            reading = naive.next_after(reading)

    return fires


def calendar_engine(event: Event) -> Fires | None:
    """Return when systemd says that the event comes; None where `systemd-analyze` is missing. On the days of a clock
    change, where some versions find no end ("Resource deadlock avoided"), the fires are those of the model."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return None
    model = calendar_model(event)

    def fires(start: datetime, end: datetime) -> Iterator[datetime]:
        at = start.astimezone(UTC)
        for change in [*clock_changes(event.tz, start - DAY, end + DAY), None]:
            if change is None:
                yield from walk(program, event, at, end)
                return
            before, after = min(end, change.at - DAY), min(end, change.at + DAY)
            if at < before:
                yield from walk(program, event, at, before)
                at = before
            if at < after:
                yield from model(at, after)
                at = after

    return fires


def walk(program: str, event: Event, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the fires after `start`, up to and including `end`."""
    last, count = start, FIRST_PAGE
    while last < end:
        page = _asked(program, event, last, count)
        if page is None and count > 1:
            count //= 2  # it reaches into a clock change
            continue
        for at in page or ():
            if at > end:
                return
            yield at
        if not page:
            return
        last, count = page[-1], min(2 * count, LAST_PAGE)


def _asked(program: str, event: Event, after: datetime, count: int) -> list[datetime] | None:
    """Return the next fires; None if systemd fails to compute so many."""
    words = [
        program,
        "calendar",
        f"--iterations={count}",
        f"--base-time={after:%Y-%m-%d %H:%M:%S} UTC",
        f"{event.text} {event.tz}",
    ]
    environment = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
    answer = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if answer.returncode and "Resource deadlock" not in answer.stderr:
        raise InvalidOptions(f"OnCalendar={event.text}: {answer.stderr.strip() or 'systemd-analyze failed'}")
    if answer.returncode:
        return None
    found = [datetime.strptime(at, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) for at in ELAPSE.findall(answer.stdout)]
    return [at for at in found if at > after]
