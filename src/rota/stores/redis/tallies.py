"""The counts of a worker as names and numbers, which a script adds up; and read back."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rota.store import Tally

_COUNTS = {
    "s": "succeeded",
    "f": "failed",
    "r": "retried",
    "c": "cancelled",
    "z": "snoozed",
    "l": "lost",
    "o": "other",
    "a": "waited",
    "b": "ran",
}
_NAME = re.compile(r"(\d+):(.*)", re.DOTALL)


def counted(tallies: Iterable[Tally]) -> list[str | int]:
    """Return name, number, name, number …"""
    found: list[str | int] = []
    for tally in tallies:
        head = pair(tally.task)
        numbers = {letter: getattr(tally, field) for letter, field in _COUNTS.items()}
        numbers |= {f"w{bucket}": count for bucket, count in tally.waits.items()}
        numbers |= {f"d{bucket}": count for bucket, count in tally.durations.items()}
        for name, number in numbers.items():
            if number:
                found += [head + name, number]
    return found


def pair(task: str) -> str:
    """The prefix of the names of `task`, as in lua/shared/clock.lua: no other task has a name with this prefix."""
    return f"{len(task.encode())}:{task}"


def read(numbers: Mapping[str, int]) -> list[Tally]:
    """Return the tallies of one minute, in the order of their tasks."""
    found: dict[str, dict[str, Any]] = {}
    for name, number in numbers.items():
        if (match := _NAME.fullmatch(name)) is None:
            continue
        rest = match[2].encode()
        task, count = rest[: int(match[1])].decode(), rest[int(match[1]) :].decode()
        fields = found.setdefault(task, {"waits": {}, "durations": {}})
        if count in _COUNTS:
            fields[_COUNTS[count]] = number
        else:
            fields["waits" if count[0] == "w" else "durations"][int(count[1:])] = number
    return [Tally(task, **fields) for task, fields in sorted(found.items())]
