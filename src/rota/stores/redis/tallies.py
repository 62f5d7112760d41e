"""What workers count, as the scripts add it up: to the scripts, and read back."""

from collections.abc import Iterable
from typing import Any, cast

from msgspec.msgpack import decode
from msgspec.structs import astuple

from rota.store import ENDINGS, Tally, Total

_NUMBERS = (*ENDINGS, "waited", "ran")


def counted(tallies: Iterable[Tally]) -> list[Any]:
    """Return task, origin, tally, task, origin, tally … A number that is 0 is left out."""
    found: list[Any] = []
    for tally in tallies:
        numbers = {place: number for place, name in enumerate(_NUMBERS, 1) if (number := getattr(tally, name))}
        found += [tally.task, tally.origin, [numbers, tally.waits, tally.durations]]
    return found


def summed(totals: Iterable[Total]) -> list[str | int]:
    """Return what, name, reason, number, what, name, reason, number …"""
    return [part for total in totals for part in astuple(total)]


def pair(task: str, key: str = "") -> str:
    """A name for two texts, as in lua/shared/clock.lua: no other two have this name, nor a name that begins so."""
    return f"{len(task.encode())}:{task}{key}"


def parts(name: str) -> tuple[str, str]:
    """Return the two texts of a name that `pair` made."""
    length, _, rest = name.partition(":")
    both = rest.encode()
    return both[: int(length)].decode(), both[int(length) :].decode()


def read_total(name: str, count: int) -> Total:
    what, rest = parts(name)
    return Total(what, *parts(rest), count)


def read_tally(name: str, packed: bytes) -> Tally:
    task, origin = parts(name)
    numbers, waits, durations = map(_numbered, decode(packed))
    named = {_NUMBERS[place - 1]: number for place, number in numbers.items()}
    return Tally(task, origin=origin, waits=waits, durations=durations, **named)


def _numbered(part: Any) -> dict[int, int]:
    """Return the numbers by their places. Lua packs a table as a list if its places are 1, 2, 3 …"""
    return dict(enumerate(cast("list[int]", part), 1)) if isinstance(part, list) else part
