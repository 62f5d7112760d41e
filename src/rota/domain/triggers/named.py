"""DailyAt, Weekly, Monthly: cron expressions with a name and parameters."""

import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta, tzinfo

from rota.domain.triggers.base import Trigger
from rota.domain.triggers.cron import Cron
from rota.domain.triggers.cron_fields import WEEKDAY_NAMES
from rota.domain.triggers.durations import read_jitter, spell_jitter
from rota.domain.triggers.words import WEEKDAYS


class _Named(Trigger):
    """A trigger that fires as its `cron` does."""

    __slots__ = ()
    cron: Cron

    def _fill(self, cron: Cron, **fields: object) -> None:
        """Set the fields of a frozen trigger, with `cron` and the time zone that it has."""
        self._set(**fields, tz=cron.tz, jitter=cron.jitter, cron=cron)

    def next_after(self, instant: datetime) -> datetime | None:
        return self.cron.next_after(instant)

    def previous_before(self, instant: datetime) -> datetime | None:
        return self.cron.previous_before(instant)

    def upcoming(self, start: datetime, n: int) -> list[datetime]:
        return self.cron.upcoming(start, n)

    @property
    def whole(self) -> bool:
        return True

    def seconds_of(self, day: int) -> int:
        return self.cron.seconds_of(day)

    def spread(self, nominal: datetime | None = None) -> timedelta:
        return self.cron.jitter

    def describe(self) -> str:
        return self.cron.describe()

    def to_text(self) -> str:
        zone = f" {self.cron.tz}" if self.cron.tz else ""
        return f"{self._spelled()}{zone}{spell_jitter(self.cron.jitter)}"

    @abstractmethod
    def _spelled(self) -> str: ...


@dataclass(frozen=True, slots=True, init=False)
class DailyAt(_Named):
    """Every day at a time of day."""

    hour: int
    minute: int
    second: int
    tz: str | None
    jitter: timedelta
    cron: Cron = field(repr=False, compare=False)

    def __init__(
        self,
        hour: int = 3,
        minute: int = 0,
        second: int = 0,
        tz: str | tzinfo | None = None,
        *,
        jitter: float | timedelta = 0,
    ) -> None:
        _check_time("DailyAt", hour, minute, second)
        cron = Cron(
            f"{second} {minute} {hour} * * *" if second else f"{minute} {hour} * * *",
            tz,
            jitter=read_jitter("DailyAt", jitter),
        )
        self._fill(cron, hour=hour, minute=minute, second=second)

    def in_zone(self, tz: str) -> "DailyAt":
        return self if self.tz is not None else DailyAt(self.hour, self.minute, self.second, tz, jitter=self.jitter)

    def _spelled(self) -> str:
        return f"daily {_clock(self.hour, self.minute)}{f':{self.second:02}' if self.second else ''}"


@dataclass(frozen=True, slots=True, init=False)
class Weekly(_Named):
    """Every week, on one weekday or several: `Weekly("mon", 9)`, `Weekly(["mon", "thu"], 9, 30)`.

    A weekday is a name of three letters, a whole name, or a number as in cron: 1 is Monday, 0 and 7 are Sunday.
    """

    days: tuple[str, ...]
    hour: int
    minute: int
    tz: str | None
    jitter: timedelta
    cron: Cron = field(repr=False, compare=False)

    def __init__(
        self,
        day: str | int | Iterable[str | int],
        hour: int = 0,
        minute: int = 0,
        tz: str | tzinfo | None = None,
        *,
        jitter: float | timedelta = 0,
    ) -> None:
        _check_time("Weekly", hour, minute, first=f"{day!r}, ")
        numbers = {_weekday(each) for each in ((day,) if isinstance(day, str | int) else day)}
        if not numbers:
            raise ValueError("Weekly: name at least one weekday")
        days = tuple(WEEKDAY_NAMES[number] for number in sorted(numbers, key=lambda number: number or 7))
        cron = Cron(f"{minute} {hour} * * {','.join(days)}", tz, jitter=read_jitter("Weekly", jitter))
        self._fill(cron, days=days, hour=hour, minute=minute)

    def in_zone(self, tz: str) -> "Weekly":
        return self if self.tz is not None else Weekly(self.days, self.hour, self.minute, tz, jitter=self.jitter)

    def _spelled(self) -> str:
        return f"weekly {','.join(self.days)} {_clock(self.hour, self.minute)}"


@dataclass(frozen=True, slots=True, init=False)
class Monthly(_Named):
    """Every month on a day; -1 is the last day. It does not fire in a month without that day."""

    day: int
    hour: int
    minute: int
    tz: str | None
    jitter: timedelta
    cron: Cron = field(repr=False, compare=False)

    def __init__(
        self,
        day: int,
        hour: int = 0,
        minute: int = 0,
        tz: str | tzinfo | None = None,
        *,
        jitter: float | timedelta = 0,
    ) -> None:
        _check_number("Monthly", "day", day)
        if day != -1 and not 1 <= day <= 31:
            raise ValueError(f"Monthly: day={day} is not 1 to 31, or -1 for the last day")
        _check_time("Monthly", hour, minute, first=f"{day!r}, ")
        cron = Cron(f"{minute} {hour} {'L' if day == -1 else day} * *", tz, jitter=read_jitter("Monthly", jitter))
        self._fill(cron, day=day, hour=hour, minute=minute)

    def in_zone(self, tz: str) -> "Monthly":
        return self if self.tz is not None else Monthly(self.day, self.hour, self.minute, tz, jitter=self.jitter)

    def _spelled(self) -> str:
        return f"monthly {self.day} {_clock(self.hour, self.minute)}"


def _check_time(kind: str, hour: int, minute: int, second: int = 0, first: str = "") -> None:
    """Raise an error if a part of a time is wrong. `first` is the code before the hour, for the advice in the
    message."""
    if (clock := _clock_of(hour)) is not None:
        numbers = ", ".join(str(number) for number in (clock if clock[2] and kind == "DailyAt" else clock[:2]))
        raise TypeError(f"{kind}: hour is a whole number, not {hour!r}; write {kind}({first}{numbers})")
    for name, value, high in (("hour", hour, 23), ("minute", minute, 59), ("second", second, 59)):
        _check_number(kind, name, value)
        if not 0 <= value <= high:
            raise ValueError(f"{kind}: {name}={value} is not 0 to {high}")


def _clock_of(hour: object) -> tuple[int, int, int] | None:
    """Return the hour, minute and second of a time that was given as the hour; None for anything else."""
    if isinstance(hour, time):
        return hour.hour, hour.minute, hour.second
    match = re.fullmatch(r"\s*([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?\s*", hour) if isinstance(hour, str) else None
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))


def _check_number(kind: str, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{kind}: {name} is a whole number, not {value!r}")


def _weekday(day: object) -> int:
    if isinstance(day, bool) or not isinstance(day, str | int):
        raise TypeError(f"Weekly: a weekday is a name or a number, not {day!r}")
    word = str(day).strip().lower()
    if word in ("0", "1", "2", "3", "4", "5", "6", "7"):
        return int(word) % 7
    for number, name in enumerate(WEEKDAYS):
        if word in (name.lower(), WEEKDAY_NAMES[number]):
            return number
    raise ValueError(f"Weekly: {day!r} is not a weekday; expected mon to sun, a whole name, or 0 to 7")


def _clock(hour: int, minute: int) -> str:
    return f"{hour:02}:{minute:02}"
