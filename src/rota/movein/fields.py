"""From sets of numbers to a trigger: other schedulers combine the fields of cron in ways that one line of cron has no
words for."""

from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from rota.domain.triggers import Cron, Trigger
from rota.domain.triggers.cron_fields import WEEKDAY_NAMES, bits, read_cron

RANGES = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12)}
PLACES = {"minute": 0, "hour": 1, "day": 2, "month": 3, "weekday": 4}
WEEK = (1, 2, 3, 4, 5, 6, 0)
"""The weekdays from Monday on, as cron counts them."""


class CronSets(Struct, frozen=True, kw_only=True):
    """The numbers of each field. A day matches if it is among `days` or `nth`, and among `weekdays` (0 is Sunday)."""

    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    days: frozenset[int]
    last_day: bool = False
    nth: tuple[str, ...] = ()
    """Weekdays of a month as cron writes them: `fri#2`, `5L`."""
    seconds: frozenset[int] = frozenset({0})
    week: str = ""
    year: str = ""
    texts: Mapping[str, str] = {}
    """How the source writes a field; kept if rota reads the same numbers from it."""

    def trigger(self, tz: str, dst: str = "vixie") -> Trigger:
        """Return the trigger. ValueError if its numbers name a date that never comes."""
        clock = f"{self._clock()}"
        month = self._text("month", self.months)
        weekday = self._text("weekday", self.weekdays)
        listed = [*([] if self._any_day else [self._text("day", self.days)] if self.days else [])]
        listed += ["L"] if self.last_day else []
        day, nth = ",".join(listed), ",".join(self.nth)

        def cron(days: str, weekdays: str) -> Cron:
            return Cron(f"{clock} {days} {month} {weekdays}", tz, dst, week=self.week, year=self.year)

        if self._any_day or not (day or nth):
            return cron("*", weekday)
        if day and nth:  # cron reads both fields as either, unless one begins with a star
            day = day.replace("*", "1-31")
        either = cron(day or "*", nth or "*")
        return either if weekday == "*" else either & cron("*", weekday)

    @property
    def _any_day(self) -> bool:
        return len(self.days) == 31

    def _clock(self) -> str:
        minute, hour = self._text("minute", self.minutes), self._text("hour", self.hours)
        return f"{minute} {hour}" if self.seconds == frozenset({0}) else f"{spell(self.seconds, 0, 59)} {minute} {hour}"

    def _text(self, field: str, numbers: frozenset[int]) -> str:
        given = self.texts.get(field, "")
        if given and _numbers(field, given) == numbers:
            return given
        if field == "weekday":
            return spell_weekdays(numbers)
        return spell(numbers, *RANGES[field])


def spell(numbers: Collection[int], low: int, high: int) -> str:
    """Return numbers as a cron field: `*`, `*/15`, `1-5,9`."""
    found = sorted(numbers)
    for step in (1, *range(2, (high - low) // 2 + 1)):
        if found == list(range(low, high + 1, step)):
            return "*" if step == 1 else f"*/{step}"
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in _runs(found))


def spell_weekdays(numbers: Collection[int]) -> str:
    """Return weekdays by name: `mon-fri`; Sunday comes last."""
    if len(numbers) == 7:
        return "*"
    days = sorted(WEEK.index(number) for number in numbers)
    names = [WEEKDAY_NAMES[WEEK[day]] for day in range(7)]
    parts: list[str] = []
    for first, last in _runs([day for day in days if day != 6]):
        parts.append(names[first] if first == last else f"{names[first]}-{names[last]}")
    return ",".join([*parts, *(["sun"] if 6 in days else [])])


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = last = number
        elif number == last + 1:
            last = number
        else:
            yield first, last
            first = last = number
    if first is not None and last is not None:
        yield first, last


def _numbers(field: str, text: str) -> frozenset[int] | None:
    """Return the numbers that rota reads from a field; None if it reads the field otherwise."""
    words = ["*"] * 5
    words[PLACES[field]] = text
    try:
        read = read_cron(" ".join(words))
    except ValueError:
        return None
    rule = read.days
    if (
        rule.last
        or rule.before_last
        or rule.last_workday
        or rule.nearest_workday
        or rule.nth_weekdays
        or rule.last_weekdays
    ):
        return None
    masks = (read.minutes, read.hours, rule.days, read.months, rule.weekdays)
    return frozenset(bits(masks[PLACES[field]]))
