"""Which days of a month match: bit d of a mask is day d.

The matching days of a month depend only on its length and the weekday of its first day, so there are 28 masks.
Days are counted from 1970-01-01.
"""

from calendar import isleap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from rota.domain.triggers.cron_fields import YEAR, CronFields, DayRule, bits

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
EPOCH_WEEKDAY = 4  # a Thursday; Sunday is 0
HORIZON_YEARS = 100  # 29 February on a given weekday is at most 40 years away, across 2100
LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class MonthDays:
    """The days on which a cron expression fires."""

    months: tuple[int, ...]
    shapes: tuple[int, ...]
    every_day: bool
    weeks: int = 0
    years: int = 0

    def on_or_after(self, day: int) -> int | None:
        if self.every_day:
            return day
        found = date.fromordinal(day + EPOCH_ORDINAL)
        year, month = found.year, found.month
        if month in self.months:
            here = found.day
            masked = self._mask(year, month, day - here + 1) >> here
            if masked:
                return day + (masked & -masked).bit_length() - 1
        for y, m in self._later(year, month):
            first = date(y, m, 1).toordinal() - EPOCH_ORDINAL
            mask = self._mask(y, m, first)
            if mask:
                return first + (mask & -mask).bit_length() - 2
        return None

    def on_or_before(self, day: int) -> int | None:
        if self.every_day:
            return day
        found = date.fromordinal(day + EPOCH_ORDINAL)
        year, month = found.year, found.month
        if month in self.months:
            first = day - found.day + 1
            masked = self._mask(year, month, first) & (2 << found.day) - 1
            if masked:
                return first + masked.bit_length() - 2
        for y, m in self._earlier(year, month):
            first = date(y, m, 1).toordinal() - EPOCH_ORDINAL
            mask = self._mask(y, m, first)
            if mask:
                return first + mask.bit_length() - 2
        return None

    def _mask(self, year: int, month: int, first: int) -> int:
        length = 29 if month == 2 and isleap(year) else LENGTHS[month]
        mask = self.shapes[(first + EPOCH_WEEKDAY) % 7 * 4 + length - 28]
        if self.years and not (year >= YEAR.low and self.years >> year - YEAR.low & 1):
            return 0
        return mask & _days_of_weeks(self.weeks, year, month, length) if self.weeks else mask

    def _later(self, year: int, month: int) -> Iterator[tuple[int, int]]:
        yield from ((year, m) for m in self.months if m > month)
        for y in range(year + 1, min(year + HORIZON_YEARS, date.max.year) + 1):
            for m in self.months:
                yield y, m

    def _earlier(self, year: int, month: int) -> Iterator[tuple[int, int]]:
        yield from ((year, m) for m in reversed(self.months) if m < month)
        for y in range(year - 1, max(year - HORIZON_YEARS, date.min.year) - 1, -1):
            for m in reversed(self.months):
                yield y, m


def month_days(fields: CronFields) -> MonthDays:
    """Return the days of a cron expression. Raise ValueError for a date that never comes, such as 30 February."""
    months = bits(fields.months)
    shapes = _shapes(fields.days)
    lengths = {LENGTHS[month] for month in months} | ({29} if 2 in months else set[int]())
    if not any(shapes[weekday * 4 + length - 28] for weekday in range(7) for length in lengths):
        raise ValueError("the day and month fields name a date that never comes")
    all_days = all(shapes[i] == ((1 << i % 4 + 29) - 2) for i in range(28))
    narrowed = bool(fields.weeks or fields.years)
    every_day = all_days and len(months) == 12 and not narrowed
    days = MonthDays(months=months, shapes=shapes, every_day=every_day, weeks=fields.weeks, years=fields.years)
    starts = (date(year, 1, 1).toordinal() - EPOCH_ORDINAL for year in (YEAR.low, 2000))  # HORIZON_YEARS from each
    if narrowed and all(days.on_or_after(start) is None for start in starts):
        raise ValueError("the day, month, week and year fields name a date that never comes")
    return days


@lru_cache(maxsize=4096)
def _days_of_weeks(weeks: int, year: int, month: int, length: int) -> int:
    """Return the days of a month that are in one of the ISO weeks."""
    found = 0
    for day in range(1, length + 1):
        if weeks >> date(year, month, day).isocalendar().week & 1:
            found |= 1 << day
    return found


@lru_cache(maxsize=1024)
def _shapes(rule: DayRule) -> tuple[int, ...]:
    return tuple(_matching(rule, first, length) for first in range(7) for length in range(28, 32))


def _matching(rule: DayRule, first: int, length: int) -> int:
    """Return the matching days of a month that begins on weekday `first` (Sunday is 0) and has `length` days."""
    whole = (1 << length + 1) - 2
    by_day = rule.days
    if rule.last:
        by_day |= 1 << length
    for back in bits(rule.before_last):
        by_day |= 1 << length - back if back < length else 0
    if rule.last_workday:
        by_day |= 1 << _nearest_workday(length, first, length)
    if 0 < rule.nearest_workday <= length:
        by_day |= 1 << _nearest_workday(rule.nearest_workday, first, length)
    by_weekday = 0
    for day in range(1, length + 1):
        weekday = (first + day - 1) % 7
        if (
            rule.weekdays >> weekday & 1
            or (rule.last_weekdays >> weekday & 1 and day + 7 > length)
            or (weekday, (day + 6) // 7) in rule.nth_weekdays
        ):
            by_weekday |= 1 << day
    return (by_day & by_weekday if rule.both else by_day | by_weekday) & whole


def _nearest_workday(day: int, first: int, length: int) -> int:
    """Return the day from Monday to Friday in the same month that is nearest to `day`."""
    weekday = (first + day - 1) % 7
    if weekday == 6:
        return day - 1 if day > 1 else day + 2
    if weekday == 0:
        return day + 1 if day < length else day - 2
    return day
