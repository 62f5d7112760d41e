"""Rules: does a cron expression name the days that its author means?"""

from collections.abc import Callable, Iterator

from rota.domain.lint.cron_text import CronText, cron_text
from rota.domain.lint.finding import Finding
from rota.domain.lint.target import View
from rota.domain.triggers import Monthly
from rota.domain.triggers.cron_fields import DAY, HOUR, MINUTE, SECOND, WEEKDAY, DayRule, bits
from rota.domain.triggers.monthdays import LENGTHS
from rota.domain.triggers.words import ALL_DAYS, ALL_WEEKDAYS, MONTHS, describe_cron, listed

NUMBERED = {"0-4": "Sunday to Thursday", "2-6": "Tuesday to Saturday"}
"""Weekdays that mean Monday to Friday in other systems, where Monday is 0 or Sunday is 1."""
SHORTEST = 28


def day_or_weekday(view: View) -> Iterator[Finding]:
    """Yield a finding if both day fields are set: cron fires on days that match either field, unless one of them begins
    with a star."""
    if view.cron is None:
        return
    cron = cron_text(view.cron)
    rule, day, weekday = cron.clock.fields.days, cron.of(DAY), cron.of(WEEKDAY)
    if not rule.both:
        if cron.clock.days.every_day or rule.days == ALL_DAYS or rule.weekdays == ALL_WEEKDAYS:
            message = f"Day {day} or weekday {weekday} is every day: one of the two fields holds all of them."
            hint = "Write * in the field that is not to count."
        else:
            message = f"It fires on days that match day {day} or weekday {weekday}, not only on those that match both."
            hint = f"Leave one of the two fields *{_both(cron, rule)}."
        yield Finding("day-or-weekday", "warning", message, hint)
    elif day not in ("*", "?") and weekday not in ("*", "?"):
        star = day if day.startswith("*") else weekday
        yield Finding(
            "day-and-weekday",
            "note",
            f"It fires only on days that match day {day} and weekday {weekday} both, because {star} begins with *.",
            "For days that match either, name them one by one; else all is well.",
        )


def _both(cron: CronText, rule: DayRule) -> str:
    """Return the advice for an author who wants days that match both fields."""
    days, weekdays = bits(rule.days), bits(rule.weekdays)
    if not weekdays or rule.last_weekdays or rule.nth_weekdays:
        return ""
    week = (days[0] + 6) // 7 if days else 0
    if 0 < week < 5 and days == tuple(range(7 * week - 6, 7 * week + 1)) and not (rule.last or rule.before_last):
        nth = ",".join(f"{number}#{week}" for number in weekdays)
        return f"; for number {week} of that weekday in the month write '{cron.line(day='*', weekday=nth)}'"
    others = ",".join(str(number) for number in range(7) if number not in weekdays)
    exclusion = cron.line(day="*", month="*", weekday=others)
    return f"; for both at once write '{cron.line(weekday='*')} excluding {exclusion}'"


def short_months(view: View) -> Iterator[Finding]:
    if view.cron is None:
        return
    cron = cron_text(view.cron)
    months = bits(cron.clock.fields.months)
    for item in cron.items(DAY):
        day = item.upper().removesuffix("W")
        lacking = [MONTHS[month - 1] for month in months if day.isdigit() and LENGTHS[month] < int(day)]
        if not lacking or months == (2,):
            continue
        years = " (but for leap years)" if day == "29" else ""
        last = f"'{cron.line(day='LW' if item.upper().endswith('W') else 'L')}'"
        if isinstance(view.base, Monthly):
            last = f"'{Monthly(-1, view.base.hour, view.base.minute, view.base.tz)}', or Monthly(-1, …) in code"
        yield Finding(
            "short-months",
            "warning",
            f"Not every month has a day {day}: {listed(lacking)}{years} {'is' if len(lacking) == 1 else 'are'} "
            "left out.",
            f"For the last day of each month write {last}; every month has the days 1 to {SHORTEST}.",
        )


def weekday_numbers(view: View) -> Iterator[Finding]:
    if view.cron is None:
        return
    cron = cron_text(view.cron)
    days = NUMBERED.get(cron.of(WEEKDAY))
    if days:
        yield Finding(
            "weekday-numbers",
            "warning",
            f"{cron.of(WEEKDAY)} in the weekday field is {days}: here 0 and 7 are Sunday, and 1 is Monday.",
            f"Names cannot be mistaken; for working days write '{cron.line(weekday='mon-fri')}'.",
        )


def six_fields(view: View) -> Iterator[Finding]:
    """Yield a finding if an expression of six fields looks like five fields and one star too many."""
    if view.cron is None:
        return
    cron = cron_text(view.cron)
    if not cron.with_seconds or cron.of(WEEKDAY) not in ("*", "?"):
        return
    second, minute, hour = cron.of(SECOND), cron.of(MINUTE), cron.of(HOUR)
    often = second.startswith("*")
    an_hour = hour == "*" and second.isdigit() and minute.isdigit() and 0 < int(minute) < 24
    if often or an_hour:
        five = " ".join(cron.texts[:5])
        yield Finding(
            "six-fields",
            "note",
            f"Of six fields the first is the seconds, so this fires {describe_cron(cron.clock.fields)}.",
            f"With five fields, '{five}' begins with the minutes.",
        )


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (day_or_weekday, short_months, weekday_numbers, six_fields)
