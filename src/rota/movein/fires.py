"""Compares when a source and rota fire: around clock changes to name the differences, over 400 days to prove them."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.triggers import Trigger
from rota.domain.triggers.zones import find_zone, zone_name
from rota.movein.plan import Difference, Fires, Row

DAYS = 400
MOST = 60_000
"""Fires of one row that a proof compares one by one. Beyond them it compares the nights of clock changes only."""
AROUND = timedelta(hours=36)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class ClockChange(Struct, frozen=True):
    """The clocks of a zone are put from `before` to `after` at an instant."""

    at: datetime
    before: datetime
    after: datetime

    @property
    def words(self) -> str:
        return f"the clocks go from {self.before:%H:%M} to {self.after:%H:%M}"


def clock_changes(tz: str, start: datetime, end: datetime) -> list[ClockChange]:
    """Return the clock changes of a zone between two instants."""
    zone, found = find_zone(tz), list[ClockChange]()
    at, last = (start - EPOCH) // SECOND, (end - EPOCH) // SECOND
    stretch = zone.stretch(at)
    while stretch.end <= last:
        following = zone.stretch(stretch.end)
        if following.offset != stretch.offset:
            change = EPOCH + stretch.end * SECOND
            shown = [(change + part.offset * SECOND).replace(tzinfo=None) for part in (stretch, following)]
            found.append(ClockChange(change, *shown))
        stretch = following
    return found


def zone_of(tz: Any) -> str:
    """Return the name of a zone object; ValueError if it has none, as a fixed offset has."""
    name = (
        getattr(tz, "key", None) or getattr(tz, "zone", None) or ("UTC" if tz.utcoffset(None) == timedelta(0) else None)
    )
    found = zone_name(name)
    if found is None:
        raise ValueError(f"its zone {tz} has no name: give the trigger one, such as Europe/Paris")
    ZoneInfo(found)
    return found


def fires_of(trigger: Trigger, start: datetime, end: datetime) -> Iterator[datetime]:
    fire = trigger.next_after(start)
    while fire is not None and fire <= end:
        yield fire
        fire = trigger.next_after(fire)


def with_named(row: Row, now: datetime, candidates: Sequence[Trigger] = ()) -> Row:
    """Return the row with its differences around the clock changes of the next 400 days.

    Of `candidates`, the row gets the trigger that keeps the number of fires per day best.
    """
    if row.trigger is None or row.model is None:
        return row
    changes = clock_changes(row.tz, now, now + timedelta(days=DAYS))
    windows = _joined([_around(each, row.trigger, now) for each in changes])
    theirs = [set(row.model(*window)) for window in windows]
    best: tuple[tuple[int, int], Trigger, list[Difference]] | None = None
    for trigger in candidates or (row.trigger,):
        apart = [
            difference
            for window, each in zip(windows, theirs, strict=True)
            for difference in _apart(set(fires_of(trigger, *window)), each, row.tz, changes)
        ]
        score = _score(apart, row.tz)
        if best is None or score < best[0]:
            best = score, trigger, apart
    assert best is not None
    return replace(row, trigger=best[1], differences=tuple(sorted(best[2])))


def _around(change: ClockChange, trigger: Trigger, now: datetime) -> tuple[datetime, datetime]:
    """Return the hours around a clock change and, where the trigger does not fire in them, up to its first fire.

    A source that counts in elapsed time may land beside that fire, however far behind the change it lies.
    """
    first = trigger.next_after(change.at) or change.at
    return max(now, change.at - AROUND), min(first, now + timedelta(days=DAYS)) + AROUND


def _score(apart: Iterable[Difference], tz: str) -> tuple[int, int]:
    """Return by how many fires the days differ, and how many instants do."""
    days, count, zone = Counter[str](), 0, ZoneInfo(tz)
    for difference in apart:
        days[difference.at.astimezone(zone).date().isoformat()] += 1 if difference.by == "source" else -1
        count += 1
    return sum(map(abs, days.values())), count


def _apart(ours: set[datetime], theirs: set[datetime], tz: str, changes: Sequence[ClockChange]) -> Iterator[Difference]:
    shared = sorted(ours & theirs)
    for at in ours ^ theirs:
        yield Difference(at, "rota" if at in ours else "source", _why(at, tz, changes, shared))


def _why(at: datetime, tz: str, changes: Sequence[ClockChange], shared: Sequence[datetime]) -> str:
    """Return the clock change that explains why only one fires at an instant; empty if none does.

    It is on the same day; on the day before, since APScheduler walks over the first hour of the day after a short one;
    or further back with no `shared` fire since, as when that walk goes from the month before into this one.
    """
    day = at.astimezone(ZoneInfo(tz)).date()
    for back, when in ((0, ""), (1, " on the day before")):
        for each in changes:
            if day - timedelta(days=back) in (each.before.date(), each.after.date()):
                return f"{each.words}{when}"
    past = [each for each in changes if each.at <= at]
    if past and bisect_right(shared, past[-1].at) == bisect_left(shared, at):
        return f"{past[-1].words} on {past[-1].after:%Y-%m-%d}, before its first fire"
    return ""


class Proof(Struct, frozen=True):
    """What the engine of the source says of one row."""

    name: str
    compared: int
    """Fires of both that were compared."""
    until: datetime
    """Every fire up to here was compared; later ones only around clock changes."""
    named: Sequence[Difference]
    unnamed: Sequence[Difference]


def prove(row: Row, now: datetime, most: int = MOST) -> Proof | None:
    """Compare all fires of the next 400 days with the source's own engine; None if there is nothing to compare."""
    if row.trigger is None or row.engine is None:
        return None
    end = now + timedelta(days=DAYS)
    ahead = list(islice(fires_of(row.trigger, now, end), most + 1))
    until = ahead[-1] if len(ahead) > most else end
    changes = clock_changes(row.tz, now, end + AROUND)
    later = [(each.at - AROUND, each.at + AROUND) for each in changes if each.at + AROUND > until and until < end]
    known = {(each.at, each.by) for each in row.differences}
    named, unnamed, compared = list[Difference](), list[Difference](), 0
    for window in _joined([(now, until), *later]):
        ours = set(ahead) if window == (now, until) else set(fires_of(row.trigger, *window))
        theirs = set(_until(row.engine, *window))
        compared += len(ours | theirs)
        for difference in _apart(ours, theirs, row.tz, changes):
            (named if (difference.at, difference.by) in known else unnamed).append(difference)
    return Proof(row.name, compared, until, tuple(sorted(named)), tuple(sorted(unnamed)))


def _until(engine: Fires, start: datetime, end: datetime) -> Iterator[datetime]:
    return takewhile(lambda fire: fire <= end, islice(engine(start, end), 2 * MOST))


def _joined(windows: Sequence[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Return the windows with overlapping ones made one."""
    found: list[tuple[datetime, datetime]] = []
    for start, end in sorted(windows):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def torn(row: Row, at: datetime) -> str:
    """Return why a cut-over at `at` would lose or double a fire of the row; empty if it does neither.

    The source fires before `at`, rota from `at` on. Around a clock change the two may fire at different instants for
    the same reading of the clock: between these instants nobody, or both, would fire.
    """
    near = [each for each in row.differences if abs(each.at - at) <= AROUND]
    if row.trigger is None or row.model is None or not near:
        return ""
    start, end = at - AROUND, at + AROUND
    theirs, ours = list(row.model(start, end)), list(fires_of(row.trigger, start, end))
    handed = sum(fire < at for fire in theirs) + sum(fire >= at for fire in ours)
    least, most = sorted((len(theirs), len(ours)))
    if least <= handed <= most:
        return ""
    last = max(each.at for each in near)
    word = "nobody would fire" if handed < least else "both would fire"
    return f"{row.name}: {word} for a time of that night; cut over after {last.isoformat().replace('+00:00', 'Z')}"
