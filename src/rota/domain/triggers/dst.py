"""From wall-clock readings to instants, through clock changes.

There are two ways. *Each* fires at every second whose wall clock matches. *Once* fires once for every matching reading,
at the first instant at which the wall clock reaches or passes it: at the reading itself on an ordinary day, at the end
of the gap for a reading inside a gap, and the first time for a repeated reading. So later readings never fire earlier.
A date that a zone left out (Apia had no 30 December 2011) never fires.

All functions take and return UTC seconds, and search up to `HORIZON` seconds far.
"""

from typing import Literal, Protocol

from rota.domain.triggers.wallclock import DAY
from rota.domain.triggers.zones import FIRST, LAST, Stretch, Zone

Dst = Literal["vixie", "skip", "twice", "each"]
HORIZON = 100 * 366 * DAY


class Readings(Protocol):
    """The readings of a wall clock at which to fire."""

    def on_or_after(self, reading: int) -> int | None: ...

    def on_or_before(self, reading: int) -> int | None: ...


def next_each(clock: Readings, zone: Zone, second: int) -> int | None:
    """The first fire at or after `second`."""
    limit = min(second + HORIZON, LAST)
    while second <= limit:
        stretch = zone.stretch(second)
        reading = clock.on_or_after(second + stretch.offset)
        if reading is not None and reading - stretch.offset < stretch.end:
            return reading - stretch.offset
        second = stretch.end
        # Nothing matches in this stretch: continue a day before the next match. The search for that match begins two
        # days back, because the clock may have been put back.
        reading = clock.on_or_after(second + stretch.offset - 2 * DAY)
        if reading is None:
            return None
        second = max(second, reading - DAY)
    return None


def previous_each(clock: Readings, zone: Zone, second: int) -> int | None:
    """The last fire at or before `second`."""
    limit = max(second - HORIZON, FIRST)
    while second >= limit:
        stretch = zone.stretch(second)
        reading = clock.on_or_before(second + stretch.offset)
        if reading is not None and reading - stretch.offset >= stretch.start:
            return reading - stretch.offset
        second = stretch.start - 1
        reading = clock.on_or_before(second + stretch.offset + 2 * DAY)
        if reading is None:
            return None
        second = min(second, reading + DAY)
    return None


def next_once(clock: Readings, zone: Zone, second: int, skip_gaps: bool) -> int | None:
    """The first fire at or after `second`."""
    limit = min(second + HORIZON, LAST)
    stretch = zone.stretch(second)
    start = stretch.reached
    if second > stretch.start:
        start = max(stretch.reached, second + stretch.offset)
    while True:
        reading = clock.on_or_after(start)
        if reading is None or reading > limit + DAY:
            return None
        stretch, fire = _first_reached(zone, reading)
        gap_end = fire + stretch.offset
        if reading == gap_end:
            return fire if fire <= LAST else None
        if skip_gaps:
            start = gap_end
        elif _left_out(reading, stretch.reached, gap_end):
            start = (reading // DAY + 1) * DAY
        else:
            return fire


def previous_once(clock: Readings, zone: Zone, second: int, skip_gaps: bool) -> int | None:
    """The last fire at or before `second`."""
    limit = max(second - HORIZON, FIRST)
    stretch = zone.stretch(second)
    start = max(stretch.reached - 1, second + stretch.offset)
    while True:
        reading = clock.on_or_before(start)
        if reading is None or reading < limit - DAY:
            return None
        stretch, fire = _first_reached(zone, reading)
        gap_end = fire + stretch.offset
        if reading == gap_end:
            return fire if fire >= FIRST else None
        if skip_gaps:
            start = stretch.reached - 1
        elif _left_out(reading, stretch.reached, gap_end):
            start = reading // DAY * DAY - 1
        else:
            return fire


def _first_reached(zone: Zone, reading: int) -> tuple[Stretch, int]:
    """Return the stretch and the first instant at which the wall clock shows `reading` or more."""
    stretch = zone.stretch(reading - DAY)  # no offset is as large as a day
    while reading - stretch.offset >= stretch.end:
        stretch = zone.stretch(stretch.end)
    return stretch, max(reading - stretch.offset, stretch.start)


def _left_out(reading: int, gap_start: int, gap_end: int) -> bool:
    midnight = reading // DAY * DAY
    return gap_start <= midnight and midnight + DAY <= gap_end
