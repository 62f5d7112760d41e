"""Reads the texts of triggers. `str(trigger)` writes what `parse` reads."""

import re
from collections.abc import Callable
from datetime import datetime, time, timedelta

from rota.domain.triggers.at_start import AtStart
from rota.domain.triggers.base import Trigger, expect
from rota.domain.triggers.combined import Intersection, Union
from rota.domain.triggers.cron import Cron
from rota.domain.triggers.cron_fields import WEEKDAY_NAMES
from rota.domain.triggers.durations import parse_duration
from rota.domain.triggers.every import Every
from rota.domain.triggers.named import DailyAt, Monthly, Weekly
from rota.domain.triggers.once import At

LENGTH_LIMIT = 4096
UNIT_WORDS = {
    f"{name}{plural}": timedelta(**{f"{name}s": 1})
    for name in ("week", "day", "hour", "minute", "second")
    for plural in ("", "s")
}
NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
STEPS = re.compile(r"(?!day$)(?:([0-9]{1,9}) ?)?(d|w|day|week|month)s?")
STEP_UNITS = {"d": "day", "w": "week"}
CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
DEPTH_LIMIT = 16
WEEKDAY_ITEM = re.compile(
    rf"(?:[0-9*?]+|{'|'.join(f'{name}[a-z]*' for name in WEEKDAY_NAMES)}|[0-7]?L|last)(?:[-/#][0-9a-z]*)*",
    re.IGNORECASE,
)
"""Also matches wrong weekday fields, so that the error names the field and not a zone."""
EXAMPLES = {
    "every": "every 15m [jitter 30s] [anchor 2026-01-01T00:00:00Z]; every 2 days at 09:00 [Europe/Paris]",
    "cron": "cron */15 7-22 * * * [Europe/Paris] [dst skip] [week 1-53/2] [year 2027] [jitter 30s]",
    "daily": "daily 09:00 [Europe/Paris] [jitter 30s]",
    "weekly": "weekly mon,thu 09:00 [Europe/Paris] [jitter 30s]",
    "monthly": "monthly -1 23:30 [Europe/Paris] [jitter 30s]",
    "at": "at 2026-11-15T09:00:00Z [jitter 30s]; at start [of each version]",
}


def parse(text: str) -> Trigger:
    """Return the trigger of a text. Raise a ValueError that says what was expected."""
    expect(str, text, "a trigger's text is a str")
    if len(text) > LENGTH_LIMIT:
        raise ValueError(
            f"a trigger's text has at most {LENGTH_LIMIT} characters, this has {len(text)}: {text[:40]!r}…"
        )
    return _parse(text, 0)


def _parse(text: str, depth: int) -> Trigger:
    """`or` binds weakest, `excluding` strongest."""
    if depth > DEPTH_LIMIT:
        raise ValueError(f"{text[:40]!r}: more than {DEPTH_LIMIT} brackets inside each other")
    for word, combine in OPERATORS.items():
        parts = _split(text, word)
        if len(parts) > 1:
            return combine([_parse(part, depth) for part in parts])
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        return _parse(text[1:-1], depth + 1)
    return _parse_one(text)


def _split(text: str, word: str) -> list[str]:
    """Return the parts of a text between `word` outside of brackets."""
    operator = re.compile(rf"\s+{word}(?:\s+|$)", re.IGNORECASE)
    parts, depth, start, at = list[str](), 0, 0, 0
    while at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        match = operator.match(text, at) if depth == 0 else None
        if match and (word != "and" or _begins_trigger(text[match.end() :])):
            parts.append(text[start:at])
            start = at = match.end()
        else:
            at += 1
    parts.append(text[start:])
    if depth:
        raise ValueError(f"{text!r}: the brackets do not match")
    if len(parts) > 1 and not all(part.strip() for part in parts):
        raise ValueError(f"{text!r}: name a trigger on either side of '{word}'")
    return parts


def _begins_trigger(text: str) -> bool:
    """Return whether a trigger may begin here. The `and` of `every Monday and Thursday at 09:00` has none behind it."""
    word = text.split(maxsplit=1)[0].lower() if text.strip() else "("
    return word in READERS or _begins_cron(word) or word.startswith("(")


def _begins_cron(word: str) -> bool:
    return word[0] in "*@?" or word[0].isdigit()


def _exclude(parts: list[Trigger]) -> Trigger:
    return parts[0].excluding(*parts[1:])


OPERATORS: dict[str, Callable[[list[Trigger]], Trigger]] = {
    "or": Union.of,
    "and": Intersection.of,
    "excluding": _exclude,
}


def _parse_one(text: str) -> Trigger:
    kind, *words = text.split() or [""]
    reader = READERS.get(kind.lower())
    if reader is None:
        if kind and _begins_cron(kind):
            return _cron(text.split())
        raise ValueError(
            f"{text!r} is no trigger; expected one of: {'; '.join(EXAMPLES.values())}; or a cron expression"
        )
    try:
        return reader(words)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}; expected such as: {EXAMPLES[kind.lower()]}") from None


def _every(words: list[str]) -> Trigger:
    """Read `every 15m`, or the words of `describe()`: `every 6 hours`, `every day at 09:00`, `every Friday at
    09:00`."""
    if not words:
        raise ValueError("how often?")
    lowered = [word.lower().rstrip(",") for word in words]
    if "at" in lowered:
        return _every_day(lowered[: lowered.index("at")], words[lowered.index("at") + 1 :])
    interval, unread = _interval(lowered)
    jitter = timedelta(0)
    if lowered[len(lowered) - unread :][:2] == ["up", "to"] and lowered[-1] == "late":
        jitter, left = _interval(lowered[len(lowered) - unread + 2 : -1])
        if left:
            raise ValueError("how late at most?")
        unread = 0
    given = _options(words[len(words) - unread :], ("jitter", "anchor"))
    return Every(
        interval,
        jitter=parse_duration(given["jitter"]) if "jitter" in given else jitter,
        anchor=_instant(given["anchor"]) if "anchor" in given else None,
    )


def _every_day(days: list[str], clock: list[str]) -> Trigger:
    """Read a time of day and perhaps a zone after `at`."""
    if (steps := STEPS.fullmatch(" ".join(days))) is not None:
        return _every_step(int(steps[1] or 1), STEP_UNITS.get(steps[2], steps[2]), clock)
    clock, jitter = _jitter(clock)
    (at,), tz = _take(clock, 1, "at what time?")
    if days == ["day"]:
        return DailyAt(*_clock(at), tz=tz, jitter=jitter)
    names = [name for word in days if word != "and" for name in word.split(",") if name]
    return Weekly(names, *_minutes(at), tz=tz, jitter=jitter)


def _every_step(count: int, unit: str, words: list[str]) -> Every:
    """Read what is behind the `at` of `every 2 days at 09:00 Europe/Paris jitter 5m anchor …`."""
    if not words:
        raise ValueError("at what time?")
    tz, options = (words[1], words[2:]) if len(words) % 2 == 0 else (None, words[1:])
    given = _options(options, ("jitter", "anchor"))
    anchor = _instant(given["anchor"]) if "anchor" in given else None
    jitter = parse_duration(given.get("jitter", "0s"))
    counts: dict[str, int] = {f"{unit}s": count}
    return Every(**counts, at=time(*_clock(words[0])), tz=tz, jitter=jitter, anchor=anchor)


def _interval(words: list[str]) -> tuple[timedelta, int]:
    """Return a duration such as `1h30m`, `hour` or `1 hour 30 minutes`, and the number of words after it."""
    if not words:
        raise ValueError("how long?")
    if words[0] in UNIT_WORDS:
        return UNIT_WORDS[words[0]], len(words) - 1
    found, at = timedelta(0), 0
    while at + 1 < len(words) and words[at + 1] in UNIT_WORDS and NUMBER.fullmatch(words[at]):
        try:
            found, at = found + float(words[at]) * UNIT_WORDS[words[at + 1]], at + 2
        except OverflowError:
            raise ValueError(f"{words[at]} {words[at + 1]} is too long") from None
    return (found, len(words) - at) if at else (parse_duration(words[0]), len(words) - 1)


def _cron(words: list[str]) -> Cron:
    words, jitter = _jitter(words)
    options = {"dst": "vixie", "week": "", "year": ""}
    while len(words) > 1 and words[-2].lower() in options:
        *words, name, value = words
        options[name.lower()] = value.lower()
    tz = None
    fields = 1 if words and words[0].startswith("@") else 6 if len(words) == 6 and _is_weekday(words[5]) else 5
    if len(words) == 7:
        fields = 6
    if len(words) == fields + 1:
        tz = words.pop()
    return Cron(" ".join(words), tz, **options, jitter=jitter)


def _is_weekday(word: str) -> bool:
    return all(WEEKDAY_ITEM.fullmatch(item) for item in word.split(","))


def _daily(words: list[str]) -> DailyAt:
    words, jitter = _jitter(words)
    clock, tz = _take(words, 1, "at what time?")
    return DailyAt(*_clock(clock[0]), tz=tz, jitter=jitter)


def _weekly(words: list[str]) -> Weekly:
    words, jitter = _jitter(words)
    (days, clock), tz = _take(words, 2, "on which weekdays, at what time?")
    return Weekly(days.split(","), *_minutes(clock), tz=tz, jitter=jitter)


def _monthly(words: list[str]) -> Monthly:
    words, jitter = _jitter(words)
    (day, clock), tz = _take(words, 2, "on which day, at what time?")
    if not re.fullmatch("-?[0-9]{1,2}", day, re.ASCII):
        raise ValueError(f"{day!r} is not a day of the month")
    return Monthly(int(day), *_minutes(clock), tz=tz, jitter=jitter)


def _at(words: list[str]) -> At | AtStart:
    words, jitter = _jitter(words)
    lowered = [word.lower() for word in words]
    if lowered in (["start"], ["start", "of", "each", "version"]):
        return AtStart(each="version" if len(lowered) > 1 else "start", jitter=jitter)
    if len(words) != 1:
        raise ValueError("at which instant?")
    return At(_instant(words[0]), jitter=jitter)


READERS: dict[str, Callable[[list[str]], Trigger]] = {
    "every": _every,
    "cron": _cron,
    "daily": _daily,
    "weekly": _weekly,
    "monthly": _monthly,
    "at": _at,
}


def _jitter(words: list[str]) -> tuple[list[str], timedelta]:
    """Return the words before `jitter 30s`, and the jitter."""
    if len(words) > 1 and words[-2].lower() == "jitter":
        return words[:-2], parse_duration(words[-1])
    return words, timedelta(0)


def _take(words: list[str], count: int, question: str) -> tuple[list[str], str | None]:
    """Return the first `count` words and the zone after them, if there is one."""
    if len(words) < count:
        raise ValueError(question)
    if len(words) > count + 1:
        raise ValueError(f"{' '.join(words[count + 1 :])!r} is too much")
    return words[:count], words[count] if len(words) > count else None


def _options(words: list[str], known: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for at in range(0, len(words), 2):
        name = words[at].lower()
        if name not in known or name in given or at + 1 == len(words):
            raise ValueError(f"{' '.join(words[at : at + 2])!r} is not understood")
        given[name] = words[at + 1]
    return given


def _clock(word: str) -> tuple[int, int, int]:
    match = CLOCK.fullmatch(word)
    if not match:
        raise ValueError(f"{word!r} is not a time of day")
    hour, minute, second = match.groups()
    return int(hour), int(minute), int(second or 0)


def _minutes(word: str) -> tuple[int, int]:
    hour, minute, second = _clock(word)
    if second:
        raise ValueError(f"{word!r} has seconds; only daily and cron take them")
    return hour, minute


def _instant(word: str) -> datetime:
    try:
        instant = datetime.fromisoformat(word)
    except ValueError:
        raise ValueError(f"{word!r} is not an instant") from None
    if instant.utcoffset() is None:
        raise ValueError(f"{word!r} names no offset; end it with Z for UTC")
    return instant
