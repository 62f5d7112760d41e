"""Periods in the format of an app: read where somebody gives a period, written where a handler sees one.

Stores, keys and marks only have the usual name of a period, such as 2026-11-15. So a day has one stored name, however
it is written.
"""

import re
from datetime import date, datetime

from rota.domain.period import SHAPES, Period, Unit

SAMPLES = (date(2026, 1, 2), date(1999, 12, 31), date(2024, 2, 29), date(2010, 11, 10))
USUAL = {"day": "%Y-%m-%d", "month": "%Y-%m"}


class Formats:
    """The formats of one app: at most one for days and one for months."""

    def __init__(self) -> None:
        self._formats: dict[Unit, str] = {}

    def learn(self, once: object) -> None:
        """Remember the format of a period that the code of the app uses. Raise ValueError if the app has another
        one."""
        if not isinstance(once, Period) or once.format is None:
            return
        check_format(once.unit, once.format)
        known = self._formats.setdefault(once.unit, once.format)
        if known != once.format:
            raise ValueError(
                f"format={once.format!r}: this app writes its {once.unit}s as {known!r}; one app has one format"
            )

    def read(self, text: str) -> str:
        """Return the usual name of a period that is written in the format of the app; other text unchanged."""
        for unit, shape in self._formats.items():
            try:
                day = _parsed(text, shape)
            except ValueError:
                continue
            if day.strftime(shape) == text:  # strptime reads a day without its leading zero as another day
                return day.strftime(USUAL[unit])
        return text

    def written(self, name: str) -> str:
        """Return a period, given by its usual name, in the format of the app."""
        for unit, shape in self._formats.items():
            if SHAPES[unit][0].fullmatch(name):
                try:
                    return _parsed(name, USUAL[unit]).strftime(shape)
                except ValueError:  # a function made this name, and it is no date
                    return name
        return name


def check_format(unit: Unit, format: str) -> str:
    """Return `format` if it writes every period differently and never like the usual name of another period; else raise
    ValueError."""
    if unit not in USUAL:
        raise ValueError(f"format={format!r}: days and months have a format; {unit}s have only their usual names")
    for day in SAMPLES:
        first = day if unit == "day" else day.replace(day=1)
        try:
            text = first.strftime(format)
            same = _reads_as(text, format, first)
        except (ValueError, re.error) as error:
            raise ValueError(f"format={format!r} cannot be read back: {error}") from None
        if not same or not text.isprintable() or "@" in text:
            raise ValueError(f"format={format!r} does not tell one {unit} from another: {first} is {text!r}")
        if any(shape.fullmatch(text) for shape, _ in SHAPES.values()) and format != USUAL[unit]:
            raise ValueError(f"format={format!r} writes {first} as {text!r}, which is the usual name of another period")
    return format


def _reads_as(text: str, shape: str, day: date) -> bool:
    """Whether `text`, which is `day` in the format `shape`, is read back as that day; ValueError if it cannot be read.

    A format without a year is never read alone: Python 3.13 warns of a day without a year, and a later Python may
    refuse one. After 28 years each date has its weekday again, so only a year tells the two days apart.
    """
    if day.replace(year=day.year + 28).strftime(shape) == text:
        _parsed(f"{day.year} {text}", f"%Y {shape}")
        return False
    return _parsed(text, shape) == day


def _parsed(text: str, shape: str) -> date:
    return datetime.strptime(text, shape).date()  # noqa: DTZ007  (a day, in no zone)
