"""Every n days, weeks or months at a time of day: readings of a wall clock, counted from a first day."""

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import lru_cache

from rota.domain.triggers.monthdays import EPOCH_ORDINAL
from rota.domain.triggers.wallclock import DAY

LIMITS = {"days": 3660, "weeks": 520, "months": 120}
SHORTEST_STEP = {"days": timedelta(days=1), "weeks": timedelta(days=7), "months": timedelta(days=28)}
"""The least time between two steps, but for clock changes."""
CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")


@dataclass(frozen=True, slots=True)
class DaySteps:
    """The days `first`, `first` + `count` units, … at `second` of the day. Days are counted from 1970-01-01.

    A month that is too short for the day of `first` has its last day instead.
    """

    first: int
    count: int
    unit: str
    second: int

    def on_or_after(self, reading: int) -> int | None:
        return self._nearest(lambda day: -(-(reading - self.second) // DAY) <= day, reading, 1)

    def on_or_before(self, reading: int) -> int | None:
        return self._nearest(lambda day: day <= (reading - self.second) // DAY, reading, -1)

    def _nearest(self, fits: Callable[[int], bool], reading: int, way: int) -> int | None:
        number = max(0, self._number(reading // DAY) - way)
        while number >= 0:
            day = self._day(number)
            if day is None:
                return None
            if fits(day):
                return day * DAY + self.second
            number += way
        return None

    def _number(self, day: int) -> int:
        """Return a step near `day`: at most one step from it."""
        if self.unit != "months":
            return (day - self.first) // self._days
        then, start = _date(day), _date(self.first)
        return ((then.year - start.year) * 12 + then.month - start.month) // self.count

    def _day(self, number: int) -> int | None:
        """Return the day of a step; None after the last year."""
        if self.unit != "months":
            return self.first + number * self._days
        start = _date(self.first)
        months = start.month - 1 + number * self.count
        year, month = start.year + months // 12, months % 12 + 1
        if year > date.max.year:
            return None
        return date(year, month, min(start.day, monthrange(year, month)[1])).toordinal() - EPOCH_ORDINAL

    @property
    def _days(self) -> int:
        return self.count * (7 if self.unit == "weeks" else 1)


def read_steps(**counts: float) -> tuple[int, str]:
    """Return the one count that is given, and its unit."""
    given = {unit: count for unit, count in counts.items() if count}
    if len(given) != 1:
        raise ValueError("Every: at= needs one of days, weeks and months, such as Every(days=2, at='09:00')")
    unit, count = given.popitem()
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= LIMITS[unit]:
        raise ValueError(f"Every: with at=, {unit} is a whole number from 1 to {LIMITS[unit]:,}, not {count!r}")
    return count, unit


def read_clock(at: str | time) -> time:
    """Return a time of day that was given as such or as a text."""
    if isinstance(at, time) and at.tzinfo is None and not at.microsecond:
        return at.replace(fold=0)
    match = CLOCK.fullmatch(at.strip()) if isinstance(at, str) else None
    try:
        if match is None:
            raise ValueError
        return time(int(match[1]), int(match[2]), int(match[3] or 0))
    except ValueError:
        raise ValueError(f"Every: at={at!r} is not a time of day; expected such as '09:00'") from None


@lru_cache(maxsize=4096)
def _date(day: int) -> date:
    return date.fromordinal(min(max(day + EPOCH_ORDINAL, 1), date.max.toordinal()))
