"""Cron expressions in words, from their bit sets, so `0,15,30,45` reads like `*/15`."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from rota.domain.triggers.cron_fields import YEAR, CronFields, DayRule, bits

WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
NTH = ("first", "second", "third", "fourth", "fifth")
ALL_DAYS, ALL_MONTHS, ALL_WEEKDAYS = (1 << 32) - 2, (1 << 13) - 2, (1 << 7) - 1
LISTED = 6  # up to so many times are named one by one


def describe_cron(fields: CronFields) -> str:
    days = _days(fields.days, fields.months)
    times = _times(bits(fields.seconds), bits(fields.minutes), bits(fields.hours))
    if times.startswith("at "):
        return f"{days or 'every day'} {times}"
    return f"{times}, {days}" if days else times


def describe_narrowed(fields: CronFields) -> str:
    """Return the ISO weeks and the years in words."""
    weeks, years = bits(fields.weeks), [YEAR.low + year for year in bits(fields.years)]
    words = f", in ISO {_counted('week', weeks)}" if weeks else ""
    return f"{words}, in {_ranges(years, str)}" if years else words


def with_zone(words: str, tz: str | None) -> str:
    if tz is None:
        return words
    if tz == "UTC":
        return f"{words} UTC" if words[-1].isdigit() else f"{words}, UTC"
    area, _, place = tz.rpartition("/")
    return f"{words}, {place.replace('_', ' ') if area and area != 'Etc' else tz} time"


def listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def _times(seconds: Sequence[int], minutes: Sequence[int], hours: Sequence[int]) -> str:
    """Return `at …`, which needs a day before it, or `every …`."""
    few = len(seconds) * len(minutes) * len(hours) <= LISTED
    regular = len(hours) == 24 or _even(minutes, 60) or (len(minutes) == 1 and len(hours) > 3 and _stride(hours))
    if few and not regular:
        return f"at {listed(_clock(h, m, s, seconds) for h in hours for m in minutes for s in seconds)}"
    if tuple(seconds) == (0,):
        return _minutes(minutes, hours)
    step = _even(seconds, 60)
    often = _every(step, "second") if step and seconds[0] == 0 else f"at {_counted('second', seconds)}"
    if len(minutes) == 60 and len(hours) == 24:
        return often if often.startswith("every") else f"every minute {often}"
    return f"{often}, in these minutes: {_minutes(minutes, hours)}"


def _minutes(minutes: Sequence[int], hours: Sequence[int]) -> str:
    step = _even(minutes, 60)
    first, last = _clock(hours[0], minutes[0]), _clock(hours[-1], minutes[-1])
    if len(hours) == 24:
        if step:
            late = f", from {minutes[0]} past the hour" if minutes[0] else ""
            return f"{_every(step, 'minute')}{late}"
        return "every hour" if tuple(minutes) == (0,) else f"every hour at {_counted('minute', minutes)}"
    if step and _stride(hours) == 1:
        return f"{_every(step, 'minute')} from {first} to {last}"
    if len(minutes) == 1 and len(hours) >= 3:
        return _hours(hours, minutes[0], first, last)
    if step:
        return f"{_every(step, 'minute')} in the hours {_ranges(hours, str)}"
    return f"at {_counted('minute', minutes)} past the hours {_ranges(hours, str)}"


def _hours(hours: Sequence[int], minute: int, first: str, last: str) -> str:
    step = _even(hours, 24)
    if step:
        return _every(step, "hour") + (f" from {first}" if hours[0] or minute else "")
    stride = _stride(hours)
    if stride and len(hours) > 3:
        return f"{_every(stride, 'hour')} from {first} to {last}"
    return f"at {listed(_clock(hour, minute) for hour in hours)}"


def _days(rule: DayRule, months: int) -> str:
    """Return the days in words; empty for every day."""
    special = rule.last or rule.before_last or rule.last_workday or rule.nearest_workday
    any_day = rule.days == ALL_DAYS
    any_weekday = rule.weekdays == ALL_WEEKDAYS
    every_day = any_day and any_weekday if rule.both else any_day or any_weekday
    if every_day:
        return "" if months == ALL_MONTHS else f"every day in {_months(months)}"
    by_day = "" if any_day and not special else f"on {_days_of_month(rule)} of {_months(months)}"
    if by_day and months == ALL_MONTHS and not special and rule.days & -rule.days >= 1 << 29:
        by_day += " that has one"
    if any_weekday:
        return by_day
    by_weekday = _weekdays(rule, months)
    if not by_day:
        return by_weekday
    if rule.both:
        return f"{by_day} if it is {_which_weekday(rule)}"
    return f"{by_day} and {by_weekday}"


def _days_of_month(rule: DayRule) -> str:
    days = bits(rule.days)
    parts: list[str] = []
    stride = _stride(days)
    if len(days) > LISTED and stride > 1:
        parts.append(f"every {_ordinal(stride)} day from the {_ordinal(days[0])}")
    elif days:
        parts.append(f"the {_ranges(days, _ordinal)}")
    if rule.nearest_workday:
        parts.append(f"the workday nearest the {_ordinal(rule.nearest_workday)}")
    if rule.last_workday:
        parts.append("the last workday")
    parts += [f"the {_ordinal(back + 1)}-to-last day" for back in reversed(bits(rule.before_last))]
    if rule.last:
        parts.append("the last day")
    return listed(parts)


def _weekdays(rule: DayRule, months: int) -> str:
    parts: list[str] = []
    if rule.weekdays:
        within = "" if months == ALL_MONTHS else f" in {_months(months)}"
        names = _weekday_names(rule.weekdays)
        parts.append(f"{'' if ' to ' in names else 'every '}{names}{within}")
    special = _special_weekdays(rule)
    if special:
        parts.append(f"on {listed(special)} of {_months(months)}")
    return listed(parts)


def _which_weekday(rule: DayRule) -> str:
    names = [f"a {WEEKDAYS[day]}" for day in _monday_first(rule.weekdays)]
    *most, last = [*names, *_special_weekdays(rule)]
    return f"{', '.join(most)} or {last}" if most else last


def _special_weekdays(rule: DayRule) -> list[str]:
    counted = [f"the {NTH[nth - 1]} {WEEKDAYS[day]}" for day, nth in sorted(rule.nth_weekdays, key=lambda d: d[::-1])]
    return counted + [f"the last {WEEKDAYS[day]}" for day in _monday_first(rule.last_weekdays)]


def _weekday_names(mask: int) -> str:
    days = [day or 7 for day in _monday_first(mask)]
    return _ranges(days, lambda day: WEEKDAYS[day % 7])


def _monday_first(mask: int) -> list[int]:
    return [day % 7 for day in range(1, 8) if mask >> day % 7 & 1]


def _months(mask: int) -> str:
    return "every month" if mask == ALL_MONTHS else _ranges(bits(mask), lambda month: MONTHS[month - 1])


def _ranges(values: Sequence[int], name: Callable[[int], str]) -> str:
    """`1, 2, 3, 7` as `1 to 3 and 7`."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    parts: list[str] = []
    for run in runs:
        parts += [f"{name(run[0])} to {name(run[-1])}"] if len(run) > 2 else [name(value) for value in run]
    return listed(parts)


def _stride(values: Sequence[int]) -> int:
    """Return the distance between neighbours if it is always the same, else 0; 1 for a single value."""
    distances = {b - a for a, b in pairwise(values)} or {1}
    return distances.pop() if len(distances) == 1 else 0


def _even(values: Sequence[int], size: int) -> int:
    """Return the distance between neighbours if it is the same all around the clock, else 0."""
    stride = _stride(values)
    return stride if len(values) > 1 and stride and stride * len(values) == size else 0


def _every(step: int, unit: str) -> str:
    return f"every {unit}" if step == 1 else f"every {step} {unit}s"


def _counted(unit: str, values: Sequence[int]) -> str:
    return f"{unit}{'s' if len(values) > 1 else ''} {_ranges(values, str)}"


def _clock(hour: int, minute: int, second: int = 0, seconds: Sequence[int] = (0,)) -> str:
    return f"{hour:02}:{minute:02}" + ("" if tuple(seconds) == (0,) else f":{second:02}")


def _ordinal(number: int) -> str:
    ending = "th" if 10 < number % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
