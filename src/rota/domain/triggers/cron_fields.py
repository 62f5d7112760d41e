"""Reads a cron expression into one bit set per field, or raises a ValueError that names the wrong field."""

from dataclasses import dataclass
from typing import NamedTuple

LENGTH_LIMIT = 256
NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
WHOLE_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
WHOLE_WEEKDAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
LAYOUT = "minute hour day month weekday, or the same with seconds first"


@dataclass(frozen=True, slots=True)
class Field:
    """The name and the range of one field."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    whole_names: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        names = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"{self.low} to {self.high}{names}"


SECOND = Field("second", 0, 59)
MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day", 1, 31)
MONTH = Field("month", 1, 12, MONTH_NAMES, WHOLE_MONTHS)
WEEKDAY = Field("weekday", 0, 7, WEEKDAY_NAMES, WHOLE_WEEKDAYS)
WEEK = Field("week", 1, 53)
YEAR = Field("year", 1970, 2099)
BACK = Field("day", 1, 30)
"""Days before the last day of a month."""


@dataclass(frozen=True, slots=True)
class DayRule:
    """Which days match in any month. Weekday bits count from Sunday."""

    days: int = 0
    last: bool = False
    before_last: int = 0
    """Bit n: n days before the last day."""
    last_workday: bool = False
    nearest_workday: int = 0
    weekdays: int = 0
    last_weekdays: int = 0
    nth_weekdays: frozenset[tuple[int, int]] = frozenset()
    both: bool = True


class CronFields(NamedTuple):
    """The bit sets of a cron expression."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: DayRule
    wild: bool
    """The minute or the hour begins with `*`, so the expression follows the real clock at clock changes."""
    weeks: int = 0
    """ISO weeks; 0 for all."""
    years: int = 0
    """Bit n: the year 1970 + n; 0 for all."""


def bits(mask: int) -> tuple[int, ...]:
    """Return the members of a bit set, ascending."""
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


def read_cron(expr: str, week: str = "", year: str = "") -> CronFields:
    texts = split_cron(expr)
    if len(texts) == 5:
        texts = ["0", *texts]
    second, minute, hour, day, month, weekday = texts
    try:
        fields = CronFields(
            seconds=_plain(SECOND, second),
            minutes=_plain(MINUTE, minute),
            hours=_plain(HOUR, hour),
            months=_plain(MONTH, month),
            days=_day_rule(day, weekday),
            wild=minute.startswith("*") or hour.startswith("*"),
            weeks=_plain(WEEK, week) if week else 0,
            years=_plain(YEAR, year) >> YEAR.low if year else 0,
        )
    except ValueError as error:
        raise ValueError(f"cron {expr!r}: {error}") from None
    return fields


def split_cron(expr: str) -> list[str]:
    """Return the texts of five or six fields. A nickname such as @daily is replaced by its fields."""
    if len(expr) > LENGTH_LIMIT:
        raise ValueError(
            f"a cron expression has at most {LENGTH_LIMIT} characters, this has {len(expr)}: {expr[:40]!r}…"
        )
    for place, letter in enumerate(expr, 1):
        if not letter.isascii() or letter == "\0":
            raise ValueError(f"cron {expr!r}: character {place}, {letter!r}, is not ASCII")
    if expr.strip().startswith("@"):
        return _nickname(expr.strip()).split()
    texts = expr.split()
    if len(texts) not in (5, 6):
        raise ValueError(f"cron {expr!r} has {len(texts)} fields; expected 5 or 6: {LAYOUT}")
    return texts


def _nickname(expr: str) -> str:
    known = NICKNAMES.get(expr.lower())
    if known is None:
        hint = "; for a fixed interval write 'every 5m'" if expr.lower().startswith("@every") else ""
        raise ValueError(f"cron {expr!r} is not known; there are: {', '.join(NICKNAMES)}{hint}")
    return known


def _plain(field: Field, text: str) -> int:
    mask = 0
    for item in _items(field, text):
        mask |= _item(field, text, item)
    return mask


def _items(field: Field, text: str) -> list[str]:
    items = text.split(",")
    if "" in items:
        raise _wrong(field, text, "a comma has nothing on one side")
    return items


def _item(field: Field, text: str, item: str) -> int:
    """Return the bits of one item: `*`, `5` or `5-9`, each perhaps with `/step`."""
    span, slash, step_text = item.partition("/")
    step = 1
    if slash:
        if not (step_text.isascii() and step_text.isdigit()):
            raise _wrong(field, text, f"the step {step_text!r} is not a whole number")
        step = int(step_text)
        if step == 0:
            raise _wrong(field, text, "a step of 0 gets nowhere")
    low, dash, high = span.partition("-")
    if span == "*":
        start, end = field.low, field.high
    elif dash:
        start, end = _value(field, text, low), _value(field, text, high)
        if end < start:
            raise _wrong(field, text, _reversed(field, low, high))
    else:
        start = _value(field, text, span)
        end = field.high if slash else start
    return sum(1 << value for value in range(start, end + 1, step))


def _reversed(field: Field, low: str, high: str) -> str:
    if field is WEEKDAY and high.lower() in ("sun", "0"):
        return f"the range {low}-{high} runs backwards; Sunday at the end is {low}-7"
    return f"the range {low}-{high} runs backwards; write {low}-{field.high},{field.low}-{high}"


def _value(field: Field, text: str, word: str) -> int:
    for names in (field.names, field.whole_names):
        if word.lower() in names:
            return names.index(word.lower()) + field.low
    if not (word.isascii() and word.isdigit()):
        if word == "?":
            raise _wrong(field, text, "'?' stands alone, in the day or the weekday field")
        if field in (DAY, WEEKDAY) and word == "*":
            raise _wrong(field, text, "'*' is no end of a range")
        meant = _meant(field, word.lower())
        raise _wrong(field, text, f"{word!r} is not {field.expected}{meant}" if word else f"expected {field.expected}")
    value = int(word)
    if not field.low <= value <= field.high:
        raise _wrong(field, text, f"{value} is not {field.expected}")
    return value


def _meant(field: Field, word: str) -> str:
    """Return the advice for a name such as mond, or for `last`."""
    short = word[:3]
    if len(word) > 3 and short in field.names:
        return f"; write {short}"
    if word == "last" and field is DAY:
        return "; the last day of the month is L"
    return "; the last Friday of the month is 5L" if word == "last" and field is WEEKDAY else ""


def _wrong(field: Field, text: str, reason: str) -> ValueError:
    return ValueError(f"{field.name} field {text!r}: {reason}")


def _day_rule(day: str, weekday: str) -> DayRule:
    day = "*" if day == "?" else day
    weekday = "*" if weekday == "?" else weekday
    days, before_last, last_workday, nearest = _days_of_month(day)
    weekdays, last_weekdays, nth = _days_of_week(weekday)
    return DayRule(
        days=days,
        last=bool(before_last & 1),
        before_last=before_last & ~1,
        last_workday=last_workday,
        nearest_workday=nearest,
        weekdays=weekdays,
        last_weekdays=last_weekdays,
        nth_weekdays=nth,
        both=day.startswith("*") or weekday.startswith("*"),
    )


def _days_of_month(text: str) -> tuple[int, int, bool, int]:
    """Return the days, the days before the last one (bit 0 is the last day), whether the last workday counts, and the
    day whose nearest workday counts."""
    mask, before_last, last_workday = 0, 0, False
    items = _items(DAY, text)
    for item in items:
        name = item.upper()
        if name == "L":
            before_last |= 1
        elif name == "LW":
            last_workday = True
        elif name.endswith("W"):
            if len(items) > 1:
                raise _wrong(DAY, text, f"{item} stands alone, not in a list")
            if name.startswith("L-"):
                raise _wrong(DAY, text, f"the workday nearest to {name[:-1]} cannot be named; there are LW and 15W")
            return 0, 0, False, _value(DAY, text, name[:-1])
        elif name.startswith("L-"):
            before_last |= 1 << _value(BACK, text, name[2:])
        else:
            mask |= _item(DAY, text, item)
    return mask, before_last, last_workday, 0


def _days_of_week(text: str) -> tuple[int, int, frozenset[tuple[int, int]]]:
    mask, last, nth = 0, 0, set[tuple[int, int]]()
    for item in _items(WEEKDAY, text):
        which, hash_, count = item.partition("#")
        if hash_:
            if count not in ("1", "2", "3", "4", "5"):
                raise _wrong(WEEKDAY, text, f"expected 1 to 5 after '#', not {count!r}")
            nth.add((_value(WEEKDAY, text, which) % 7, int(count)))
        elif item.upper().endswith("L"):
            number = item[:-1]
            if number.lower() in (*WEEKDAY_NAMES, *WHOLE_WEEKDAYS):
                raise _wrong(WEEKDAY, text, f"write {_value(WEEKDAY, text, number)}L, with the weekday's number")
            if not number:
                raise _wrong(WEEKDAY, text, "say the last of which weekday: 5L is the last Friday")
            last |= 1 << _value(WEEKDAY, text, number) % 7
        else:
            mask |= _item(WEEKDAY, text, item)
    return (mask | mask >> 7) & 0x7F, last, frozenset(nth)
