"""Durations as texts: `1h30m`, `0.5s`."""

import re
from datetime import timedelta

UNITS = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}
NAMES = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
JITTER_LIMIT = timedelta(days=1)
SHAPE = re.compile(
    r"(?=[0-9])(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m(?!s))?(?:([0-9]+)(?:\.([0-9]{1,6}))?s)?(?:([0-9]+)ms)?"
)


def spell_duration(duration: timedelta) -> str:
    return "".join(f"{count}{unit}" for unit, count in _parts(duration))


def word_duration(duration: timedelta) -> str:
    return " ".join(f"{count} {NAMES[unit]}{'' if count == '1' else 's'}" for unit, count in _parts(duration))


def spell_jitter(jitter: timedelta) -> str:
    return f" jitter {spell_duration(jitter)}" if jitter else ""


def word_jitter(jitter: timedelta) -> str:
    return f", up to {word_duration(jitter)} late" if jitter else ""


def read_jitter(kind: str, jitter: float | timedelta) -> timedelta:
    """Return the jitter of a trigger that names wall-clock times."""
    spread = read_span(kind, "jitter", jitter)
    if not timedelta(0) <= spread <= JITTER_LIMIT:
        raise ValueError(f"{kind}: jitter={spread} is not from 0 to {word_duration(JITTER_LIMIT)}")
    return spread


def parse_duration(text: str) -> timedelta:
    match = SHAPE.fullmatch(text.lower()) if text.isascii() else None
    if not match:
        raise ValueError(f"{text!r} is not a duration; expected such as 30s, 15m, 1h30m, 2d or 500ms")
    days, hours, minutes, seconds, fraction, milliseconds = (part or "0" for part in match.groups())
    try:
        return timedelta(
            days=int(days),
            hours=int(hours),
            minutes=int(minutes),
            seconds=int(seconds),
            milliseconds=int(milliseconds),
            microseconds=int(fraction.ljust(6, "0")),
        )
    except (OverflowError, ValueError):
        raise ValueError(f"the duration {text[:40]!r} is too long") from None


def _parts(duration: timedelta) -> list[tuple[str, str]]:
    remainder = duration // timedelta(microseconds=1)
    parts: list[tuple[str, str]] = []
    for unit, size in UNITS.items():
        count, remainder = divmod(remainder, size)
        fraction = f".{remainder:06}".rstrip("0") if unit == "s" and remainder else ""
        if count or fraction:
            parts.append((unit, f"{count}{fraction}"))
    return parts or [("s", "0")]


def read_span(kind: str, what: str, count: float | timedelta, unit: str = "seconds") -> timedelta:
    """Return a number of `unit`, or a timedelta, as a timedelta. The messages name the trigger `kind` and its
    parameter."""
    if isinstance(count, timedelta):
        if unit != "seconds":
            raise TypeError(f"{kind}: {unit} is a number; a timedelta stands alone: {kind}(timedelta(…))")
        return count
    if isinstance(count, bool):
        raise TypeError(f"{kind}: {what} is a number or a timedelta, not {count!r}")
    try:
        return timedelta(**{unit: count})
    except TypeError:
        raise TypeError(f"{kind}: {what} is a number or a timedelta, not {count!r}") from None
    except (OverflowError, ValueError):
        raise ValueError(f"{kind}: {what} {unit}={count!r} is out of range") from None
