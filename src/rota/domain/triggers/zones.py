"""Zones as stretches of constant offset. Stretches are computed when an instant near them is needed, and cached."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from rota.domain.text import closest

DAY = 86_400
BLOCK = 31_556_952  # a Gregorian year in the mean
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = (datetime(1, 1, 4, tzinfo=UTC) - EPOCH) // timedelta(seconds=1)
LAST = (datetime(9999, 12, 28, tzinfo=UTC) - EPOCH) // timedelta(seconds=1)


class Stretch(NamedTuple):
    """From `start` to before `end` (UTC seconds) the wall clock shows UTC + `offset`."""

    start: int
    end: int
    offset: int
    reached: int
    """The first reading that the wall clock had not reached before `start`: later than `start + offset` if the clock is
    put back at `start`, earlier if it is put forward."""


class Zone:
    """The stretches of one zone."""

    __slots__ = ("_blocks", "_epoch", "_rules", "last")

    def __init__(self, rules: tzinfo) -> None:
        self._rules = rules
        self._epoch = EPOCH.replace(tzinfo=rules)  # `fromutc` needs UTC values with this zone as tzinfo
        self._blocks: dict[int, tuple[list[int], list[Stretch]]] = {}
        self.last = Stretch(0, 0, 0, 0)
        """The last stretch that was found: the next search mostly needs it again."""

    def stretch(self, second: int) -> Stretch:
        """Return the stretch of a UTC second. It may end early, and the next one then has the same offset."""
        number = second // BLOCK
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = self._block(number)
        starts, stretches = block
        self.last = stretches[bisect_right(starts, second) - 1]
        return self.last

    def _block(self, number: int) -> tuple[list[int], list[Stretch]]:
        start, end = number * BLOCK, (number + 1) * BLOCK
        before = start - 3 * DAY  # a clock change just before the block still matters in the block
        stretches: list[Stretch] = []
        at, offset = before, self._offset(before)
        reached = at + offset
        for change, changed in [*self._changes(before, end), (end, 0)]:
            if change > start:
                begin = max(at, start)
                shown = reached if at >= start else max(reached, begin + offset)
                stretches.append(Stretch(begin, change, offset, shown))
            reached = max(reached, change + offset)
            at, offset = change, changed
        return [stretch.start for stretch in stretches], stretches

    def _changes(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return (second, new offset) of each change. It looks at every other day: no zone has ever changed twice
        within three days."""
        found: list[tuple[int, int]] = []
        at, offset = start, self._offset(start)
        while at < end:
            then = min(at + 2 * DAY, end)
            if self._offset(then) == offset:
                at = then
                continue
            low, high = at, then
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if self._offset(middle) == offset else (low, middle)
            at, offset = high, self._offset(high)
            if at < end:
                found.append((at, offset))
        return found

    def _offset(self, second: int) -> int:
        if not FIRST - DAY < second < LAST + DAY:
            second = min(max(second, FIRST - DAY), LAST + DAY)
        offset = self._rules.fromutc(self._epoch + timedelta(0, second)).utcoffset()
        return 0 if offset is None else offset.days * DAY + offset.seconds


class _Utc(Zone):
    """UTC never changes: one stretch."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(UTC)
        self.last = Stretch(FIRST - 9 * DAY, LAST + 9 * DAY, 0, FIRST - 9 * DAY)

    def stretch(self, second: int) -> Stretch:
        return self.last


UTC_ZONE = _Utc()


def zone_name(tz: object) -> str | None:
    """Return the name of a zone as it is stored. Raise ValueError for an unknown zone."""
    if tz is None:
        return None
    name = getattr(tz, "key", "UTC" if tz is UTC else tz)
    if not isinstance(name, str):
        raise TypeError(f"tz is a zone's name such as 'Europe/Paris', not {tz!r}")
    find_zone(name)
    return name


def find_zone(name: str | None) -> Zone:
    """Return the zone with this name; UTC for None."""
    if name is None or name == "UTC":
        return UTC_ZONE
    try:
        rules = ZoneInfo("" if name == "localtime" else name)  # refuse localtime: it is another zone on each host
    except (KeyError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}{_did_you_mean(name)}") from None
    return _zone(rules)


@lru_cache(maxsize=1024)
def _zone(rules: ZoneInfo) -> Zone:
    return Zone(rules)


def _did_you_mean(name: str) -> str:
    known = sorted(available_timezones() - {"localtime"})
    wanted = name.replace(" ", "_")
    cities = {zone.rpartition("/")[2]: zone for zone in known}
    near = closest(wanted, known, most=2, cutoff=0.75)
    near += [cities[city] for city in closest(wanted.rpartition("/")[2], cities, most=2, cutoff=0.8)]
    names = list(dict.fromkeys(near))[:3]
    if not names:
        return "; names are such as 'Europe/Paris' or 'UTC'"
    return f"; did you mean {' or '.join(names)}?"
