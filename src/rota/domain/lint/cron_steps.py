"""Rules: is the step of a cron field, such as */7, even?"""

from collections.abc import Callable, Iterator

from rota.domain.lint.cron_text import FIELDS, CronText, cron_text
from rota.domain.lint.finding import Finding
from rota.domain.lint.target import View
from rota.domain.triggers.cron_fields import DAY, HOUR, MINUTE, MONTH, SECOND, WEEKDAY, Field, bits
from rota.domain.triggers.words import ALL_DAYS, ALL_WEEKDAYS, listed

AROUND = {"second": 60, "minute": 60, "hour": 24, "day": 31, "month": 12, "weekday": 7}
"""How many values a field has before it begins again; for days, the most."""
WHOLE = {"second": "minute", "minute": "hour", "hour": "day", "day": "month", "month": "year", "weekday": "week"}
LETTERS = {"second": "s", "minute": "m", "hour": "h", "day": "d"}


def steps(view: View) -> Iterator[Finding]:
    if view.cron is None:
        return
    cron = cron_text(view.cron)
    for field in FIELDS:
        for item in cron.items(field):
            span, slash, step = item.partition("/")
            if not slash:
                continue
            reached = _reached(field, span, int(step))
            if len(reached) == 1 and int(step) > 1:
                yield _too_long(field, item, int(step), reached[0])
            elif span == "*" or "-" not in span:
                yield from _uneven(cron, field, item, int(step), reached)


def _too_long(field: Field, item: str, step: int, only: int) -> Finding:
    pace = _even_pace(field, step)
    return Finding(
        "step-too-long",
        "warning",
        f"{item} in the {field.name} field matches {only} alone: a step of {step} leads out of the "
        f"{WHOLE[field.name]}.",
        f"Write {only} if that is meant" + (f"; {pace}." if pace else "."),
    )


def _uneven(cron: CronText, field: Field, item: str, step: int, reached: list[int]) -> Iterator[Finding]:
    around = AROUND[field.name]
    gap = around - reached[-1] + reached[0]
    if gap >= step or not _goes_on(cron, field):
        return
    unit = "day" if field is WEEKDAY else field.name
    month = "in a month of 31 days, " if field is DAY else ""
    pace = _even_pace(field, step)
    yield Finding(
        "uneven-step",
        "warning",
        f"{item} in the {field.name} field is uneven: {month}{field.name} {reached[0]} comes only {gap} "
        f"{unit}{'' if gap == 1 else 's'} after {field.name} {reached[-1]}, not {step}.",
        _even_steps(field, around) + (f"; {pace}." if pace else "."),
    )


def _reached(field: Field, span: str, step: int) -> list[int]:
    """Return the values that a step takes. Weekday 7 is Sunday again."""
    low, dash, high = span.partition("-")
    first = field.low if span == "*" else _number(field, low)
    last = _number(field, high) if dash else field.high
    values = list(range(first, last + 1, step))
    return [value for value in values if not (field is WEEKDAY and value == 7 and 0 in values)]


def _number(field: Field, word: str) -> int:
    return field.names.index(word.lower()) + field.low if word.lower() in field.names else int(word)


def _goes_on(cron: CronText, field: Field) -> bool:
    """Return whether the next minute, hour, day or month also matches. If not, nothing follows the last value
    closely."""
    fields = cron.clock.fields
    if field is SECOND:
        return _has_neighbours(fields.minutes, 60)
    if field is MINUTE:
        return _has_neighbours(fields.hours, 24)
    if field is HOUR:
        return any(shape & shape >> 1 for shape in cron.clock.days.shapes)
    if field is DAY:
        return _has_neighbours(fields.months, 12) and fields.days.weekdays == ALL_WEEKDAYS
    return field is MONTH or fields.days.days == ALL_DAYS


def _has_neighbours(mask: int, around: int) -> bool:
    found = {value % around for value in bits(mask)}
    return any((value + 1) % around in found for value in found)


def _even_pace(field: Field, step: int) -> str:
    letter = LETTERS.get(field.name)
    return f"for an even pace write 'every {step}{letter}'" if letter else ""


def _even_steps(field: Field, around: int) -> str:
    if field in (DAY, WEEKDAY):
        return f"Name the {field.name}s one by one"
    return f"Even steps are {listed(str(n) for n in range(2, around) if around % n == 0)}"


RULES: tuple[Callable[[View], Iterator[Finding]], ...] = (steps,)
