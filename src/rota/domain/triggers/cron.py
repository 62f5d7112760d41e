"""Cron. We use no library, because those that we tried fail at clock changes: tests/domain/triggers shows how."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import get_args

from rota.domain.triggers.base import EPOCH, ZERO, Trigger, expect, since_epoch
from rota.domain.triggers.dst import Dst, next_each, next_once, previous_each, previous_once
from rota.domain.triggers.durations import read_jitter, spell_jitter, word_jitter
from rota.domain.triggers.wallclock import DAY, WallClock, wall_clock
from rota.domain.triggers.words import describe_cron, describe_narrowed, with_zone
from rota.domain.triggers.zones import FIRST, LAST, Zone, find_zone, zone_name

NARROWED_LIMIT = 64


@dataclass(frozen=True, slots=True, init=False)
class Cron(Trigger):
    """`minute hour day month weekday`, or the same with seconds first, on the wall clock of a zone.

    Without `tz` it is in the zone of the app (default: UTC). At clock changes `dst="vixie"` does what cron does: if the
    minute or the hour begins with `*`, it fires at every instant whose wall clock matches; otherwise a time inside the
    gap fires at the end of the gap, and a repeated time fires once, the first time. `dst="skip"` leaves out times
    inside the gap; `dst="twice"` fires repeated times both times; `dst="each"` does both: it fires whenever the wall
    clock shows a matching time. `week` narrows the days to ISO weeks, `year` to years: `week="*/2"`,
    `year="2027-2030"`. `jitter` is the most by which a fire is moved later, always to before the next fire.
    """

    expr: str
    tz: str | None = None
    dst: Dst = "vixie"
    jitter: timedelta = ZERO
    week: str = ""
    year: str = ""
    _clock: WallClock = field(init=False, repr=False, compare=False)
    _zone: Zone = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        expr: str,
        tz: str | tzinfo | None = None,
        dst: str = "vixie",
        *,
        week: str | int = "",
        year: str | int = "",
        jitter: float | timedelta = 0,
    ) -> None:
        expect(str, expr, "a cron expression is a text such as '0 9 * * *'")
        weeks, years = _narrowed("week", week), _narrowed("year", year)
        clock = wall_clock(expr, weeks, years)
        if dst not in get_args(Dst):
            raise ValueError(f"dst={dst!r} is not one of {', '.join(get_args(Dst))}")
        name, spread = zone_name(tz), read_jitter("Cron", jitter)
        self._set(expr=" ".join(expr.split()), tz=name, dst=dst, jitter=spread, week=weeks, year=years)
        self._set(_clock=clock, _zone=find_zone(name))

    def next_after(self, instant: datetime) -> datetime | None:
        try:
            since = instant - EPOCH
        except TypeError:
            since = since_epoch(instant)
        fire = self._from(since.days * 86_400 + since.seconds + 1)
        return None if fire is None else EPOCH + timedelta(0, fire)

    def previous_before(self, instant: datetime) -> datetime | None:
        since = since_epoch(instant)
        second = since.days * 86_400 + since.seconds - (not since.microseconds)
        if second < FIRST:
            return None
        fire = self._to(min(second, LAST))
        return None if fire is None else EPOCH + timedelta(0, fire)

    def upcoming(self, start: datetime, n: int) -> list[datetime]:
        since = since_epoch(start)
        fires: list[datetime] = []
        fire = self._from(since.days * 86_400 + since.seconds + 1) if n > 0 else None
        while fire is not None:
            fires.append(EPOCH + timedelta(0, fire))
            fire = self._from(fire + 1) if len(fires) < n else None
        return fires

    def _from(self, second: int) -> int | None:
        """Return the first fire at or after a UTC second."""
        if not FIRST < second <= LAST:
            if second > LAST:
                return None
            second = FIRST + 1
        clock, zone = self._clock, self._zone
        start, end, offset, reached = zone.last
        if not start < second < end:
            start, end, offset, reached = zone.stretch(second)
        local = second + offset
        if second > start and local >= reached:
            reading = clock.on_or_after(local)
            if reading is None:
                return None
            if reading - offset < end:
                return reading - offset
        if clock.fields.wild or self.dst == "each":
            return next_each(clock, zone, second)
        once = next_once(clock, zone, second, self.dst == "skip")
        if self.dst != "twice":
            return once
        each = next_each(clock, zone, second)
        return once if each is None else each if once is None else min(once, each)

    def _to(self, second: int) -> int | None:
        """Return the last fire at or before a UTC second."""
        clock, zone = self._clock, self._zone
        if clock.fields.wild or self.dst == "each":
            return previous_each(clock, zone, second)
        once = previous_once(clock, zone, second, self.dst == "skip")
        if self.dst != "twice":
            return once
        each = previous_each(clock, zone, second)
        return once if each is None else each if once is None else max(once, each)

    def spread(self, nominal: datetime | None = None) -> timedelta:
        return self.jitter

    @property
    def whole(self) -> bool:
        return True

    def seconds_of(self, day: int) -> int:
        clock, zone = self._clock, self._zone
        first = at = max(day * DAY, FIRST + 1)
        end, found = min((day + 1) * DAY, LAST + 1), 0
        each = clock.fields.wild or self.dst in ("twice", "each")
        while at < end:
            stretch = zone.stretch(at)
            until, low = min(stretch.end, end), at + stretch.offset
            if not each:
                low = max(low, stretch.reached)  # a repeated reading fires the first time only
            found |= clock.bits(low, until + stretch.offset) << low - stretch.offset - day * DAY
            if at == stretch.start and self._from(at) == at:  # the readings inside a gap fire at its end
                found |= 1 << at - day * DAY
            at = until
        return found if first < end else 0

    def in_zone(self, tz: str) -> "Cron":
        if self.tz is not None:
            return self
        return Cron(self.expr, tz, self.dst, week=self.week, year=self.year, jitter=self.jitter)

    def to_text(self) -> str:
        named = {"dst": "" if self.dst == "vixie" else self.dst, "week": self.week, "year": self.year}
        options = "".join(f" {name} {value}" for name, value in named.items() if value)
        return f"cron {self.expr}{f' {self.tz}' if self.tz else ''}{options}{spell_jitter(self.jitter)}"

    def describe(self) -> str:
        words = with_zone(describe_cron(self._clock.fields), self.tz)
        return f"{words}{describe_narrowed(self._clock.fields)}{word_jitter(self.jitter)}"


def _narrowed(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(f"Cron: {name} is a number or a text such as '1-10,20', not {value!r}")
    text = "".join(str(value).split())
    if len(text) > NARROWED_LIMIT:
        raise ValueError(f"Cron: {name} has at most {NARROWED_LIMIT} characters")
    return "" if text == "*" else text
