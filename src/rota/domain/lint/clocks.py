"""Rules: what the clock changes of its zone do to a schedule."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from rota.domain.lint.finding import Finding
from rota.domain.lint.target import View
from rota.domain.triggers import Cron
from rota.domain.triggers.base import EPOCH
from rota.domain.triggers.wallclock import DAY, WallClock, wall_clock
from rota.domain.triggers.zones import LAST, find_zone

YEARS = 5
"""How many years ahead clock changes are searched. Later rules of zones are not known yet."""
SECOND = timedelta(seconds=1)
ONE_DAY = timedelta(days=1)


class Change(Struct, frozen=True):
    """A clock change from the reading `before` to the reading `after`, in seconds."""

    before: int
    after: int

    @property
    def forward(self) -> bool:
        return self.after > self.before

    def words(self, zone: str) -> str:
        way = "forward" if self.forward else "back"
        day = _reading(min(self.before, self.after))
        return f"On {day:%Y-%m-%d} the clock in {zone} goes {way} from {_clock(self.before)} to {_clock(self.after)}"


def gap(view: View) -> Iterator[Finding]:
    """Yield a finding if the schedule has a time that a clock change forward leaves out."""
    cron = view.cron
    change, reading = _first_met(cron, view.now, forward=True) if cron else (None, 0)
    if cron is None or change is None:
        return
    outcome = f"rota fires at {_clock(change.after)} instead"
    if cron.dst in ("skip", "each") or wall_clock(cron.expr, cron.week, cron.year).fields.wild:
        outcome = "rota does not fire then"
    yield Finding(
        "clock-gap",
        "warning",
        f"{change.words(_zone(cron))}, so that there is no {_clock(reading)}: {outcome}.",
        f"Choose a time before {_clock(change.before)} or from {_clock(change.after)} on, or UTC as the zone.",
    )


def fold(view: View) -> Iterator[Finding]:
    """Yield a finding if the schedule has a time that a clock change back repeats."""
    cron = view.cron
    change, reading = _first_met(cron, view.now, forward=False) if cron else (None, 0)
    if cron is None or change is None:
        return
    outcome = "rota fires the first time only"
    if cron.dst in ("twice", "each") or wall_clock(cron.expr, cron.week, cron.year).fields.wild:
        outcome = "rota fires both times"
    yield Finding(
        "clock-fold",
        "warning",
        f"{change.words(_zone(cron))}, so that {_clock(reading)} comes twice: {outcome}.",
        f"Choose a time before {_clock(change.after)} or from {_clock(change.before)} on, or UTC as the zone.",
    )


def drift(view: View) -> Iterator[Finding]:
    """Yield a finding for an interval of whole days: it counts hours, so clock changes shift its time of day."""
    every, zone = view.every, view.target.zone
    if every is None or every.interval % ONE_DAY:
        return
    change = next(_changes(zone, view.now), None) if zone else None
    if zone and change:
        by = "later" if change.forward else "earlier"
        yield Finding(
            "drift",
            "warning",
            f"{change.words(zone)}, but '{every}' counts hours: from then on it fires "
            f"{_span(abs(change.after - change.before))} {by} by that clock.",
            _by_the_clock(every.interval, zone),
        )
    elif every.anchor is None:
        yield Finding(
            "no-time-of-day",
            "note",
            f"'{every}' names no time of day: it fires at the time at which the schedule was first put.",
            _by_the_clock(every.interval, zone or "UTC"),
        )


def no_zone(view: View) -> Iterator[Finding]:
    cron = view.cron
    if cron is None or cron.tz is not None:
        return
    clock = wall_clock(cron.expr, cron.week, cron.year)
    if clock.fields.hours.bit_count() < 24 or not clock.days.every_day:
        yield Finding(
            "no-zone",
            "note",
            "It names no time zone, so its times are UTC, summer and winter.",
            "If they are the times of a place, name its zone, such as Europe/Paris.",
        )


def _first_met(cron: Cron, now: datetime, forward: bool) -> tuple[Change | None, int]:
    """Return the first clock change, forward or back, that a time of the cron expression falls into, and that time."""
    clock = wall_clock(cron.expr, cron.week, cron.year)
    for change in _changes(cron.tz, now):
        low, high = sorted((change.before, change.after))
        reading = clock.on_or_after(low)
        if change.forward == forward and reading is not None and reading < high and _fixed(clock, low, high):
            return change, reading
    return None, 0


def _fixed(clock: WallClock, low: int, high: int) -> bool:
    """Return whether the expression has a fixed time from `low` to `high`. With a star in the minute or hour it follows
    the real clock; that needs a finding only if all its times of a day are from `low` to `high`."""
    return not clock.fields.wild or all(low % DAY <= minute * 60 < low % DAY + high - low for minute in clock.minutes)


def _changes(tz: str | None, now: datetime) -> Iterator[Change]:
    zone = find_zone(tz)
    second = (now - EPOCH) // SECOND
    limit = min(second + YEARS * 366 * DAY, LAST)
    stretch = zone.stretch(second)
    while stretch.end <= limit:
        before = stretch.end + stretch.offset
        stretch = zone.stretch(stretch.end)
        if before != stretch.start + stretch.offset:
            yield Change(before, stretch.start + stretch.offset)


def _zone(cron: Cron) -> str:
    return cron.tz or "UTC"


def _by_the_clock(interval: timedelta, zone: str) -> str:
    words = {1: "daily 09:00", 7: "weekly mon 09:00"}.get(interval.days, f"every {interval.days} days at 09:00")
    return f"For a time of day write '{words} {zone}'."


def _reading(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def _clock(seconds: int) -> str:
    reading = _reading(seconds)
    return f"{reading:%H:%M:%S}" if reading.second else f"{reading:%H:%M}"


def _span(seconds: int) -> str:
    return "an hour" if seconds == 3600 else f"{seconds // 60} minutes"


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (gap, fold, drift, no_zone)
