"""Period: an hour, day, week or month in a zone, with a name that sorts and that people can write."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from msgspec import Struct

from rota.domain.triggers.zones import find_zone

Unit = Literal["hour", "day", "week", "month"]

SHAPES = {
    "hour": (re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d)([+-]\d{4})", re.ASCII), "2026-11-15T09+0100"),
    "day": (re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII), "2026-11-15"),
    "week": (re.compile(r"(\d{4})-W(\d\d)", re.ASCII), "2026-W46"),
    "month": (re.compile(r"(\d{4})-(\d\d)", re.ASCII), "2026-11"),
}


class Period(Struct, frozen=True, omit_defaults=True):
    """A kind of period, such as `Period.day(tz="Europe/Paris")`. Without a zone it is in the zone of the app.

    The name of an hour has its offset from UTC, so that a repeated hour has two names. `format` is how the app writes
    its days or months, such as "%d%m%Y": handlers see that form, and every `period=` and `--period` accepts it. Stores
    keep the usual name.
    """

    unit: Unit
    tz: str | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        if self.unit not in SHAPES:
            raise ValueError(f"Period({self.unit!r}): choose hour, day, week or month")
        if self.tz is not None:
            find_zone(self.tz)

    @classmethod
    def hour(cls, tz: str | None = None) -> "Period":
        return cls("hour", tz)

    @classmethod
    def day(cls, tz: str | None = None, format: str | None = None) -> "Period":
        return cls("day", tz, format)

    @classmethod
    def week(cls, tz: str | None = None) -> "Period":
        """A week from Monday, numbered as in ISO 8601."""
        return cls("week", tz)

    @classmethod
    def month(cls, tz: str | None = None, format: str | None = None) -> "Period":
        return cls("month", tz, format)

    def in_zone(self, tz: str) -> "Period":
        return self if self.tz is not None else Period(self.unit, tz, self.format)

    def stored(self) -> "Period":
        """Return the period without its format: stores know only the usual names."""
        return self if self.format is None else Period(self.unit, self.tz)

    @property
    def longest(self) -> float:
        """The seconds of the longest period of this kind."""
        return {"hour": 3600.0, "day": 25 * 3600.0, "week": 8 * 86_400.0, "month": 32 * 86_400.0}[self.unit]

    def name(self, instant: datetime) -> str:
        """Return the name of the period of an instant."""
        if instant.utcoffset() is None:
            raise ValueError(f"{instant.isoformat()} names no zone; give it one, such as datetime(…, tzinfo=UTC)")
        wall = instant.astimezone(self._zone)
        if self.unit == "week":
            year, week, _ = wall.isocalendar()
            return f"{year:04}-W{week:02}"
        shape = {"hour": "%Y-%m-%dT%H%z", "day": "%Y-%m-%d", "month": "%Y-%m"}[self.unit]
        return wall.strftime(shape)

    def check(self, name: str) -> str:
        """Return `name` if it is the name of a period of this kind; else raise ValueError."""
        begin, _ = self.bounds(name)
        if self.name(begin) != name:
            raise ValueError(f"{name!r} is no {self.unit} of {self.tz or 'UTC'}; that one is {self.name(begin)}")
        return name

    def between(self, first: str, last: str, most: int) -> list[str]:
        """Return the names from `first` to `last`. Raise ValueError if there are more than `most`."""
        at, end = self.bounds(first)[0], self.bounds(last)[0]
        names: list[str] = []
        while at <= end:
            if len(names) == most:
                raise ValueError(f"more than {most:,} {self.unit}s lie between {first} and {last}")
            names.append(self.name(at))
            at = self.bounds(names[-1])[1]
        return names

    def bounds(self, name: str) -> tuple[datetime, datetime]:
        """Return when the period of this name begins and when the next one begins."""
        shape, example = SHAPES[self.unit]
        found = shape.fullmatch(name)
        try:
            if found is None:
                raise ValueError("it is spelled otherwise")
            return self._bounds(name, [int(part) for part in found.groups() if part.isdecimal()])
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{name!r} is no {self.unit}: {error}; write it like {example}") from None

    def _bounds(self, name: str, parts: list[int]) -> tuple[datetime, datetime]:
        if self.unit == "hour":
            begin = datetime.strptime(name, "%Y-%m-%dT%H%z").astimezone(UTC)
            return begin, begin + timedelta(hours=1)
        if self.unit == "week":
            first = date.fromisocalendar(parts[0], parts[1], 1)
            return self._midnight(first), self._midnight(first + timedelta(days=7))
        first = date(parts[0], parts[1], parts[2] if self.unit == "day" else 1)
        if self.unit == "day":
            return self._midnight(first), self._midnight(first + timedelta(days=1))
        return self._midnight(first), self._midnight((first + timedelta(days=32)).replace(day=1))

    def _midnight(self, day: date) -> datetime:
        """Return when a day begins. In a zone whose clock skips midnight, that is when the clock first shows the
        day."""
        return datetime(day.year, day.month, day.day, tzinfo=self._zone).astimezone(UTC)

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.tz or "UTC")
