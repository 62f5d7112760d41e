"""Forecast: what fires when, which schedules meet in the same minute, and how many seats that takes."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, tzinfo
from itertools import islice

from msgspec import Struct

from rota.domain.schedule import Schedule
from rota.domain.timing import Timing

DAY, HOUR, MINUTE = 86_400.0, 3600.0, 60.0
FREQUENT = 144
"""Fires a day beyond which a schedule is told by its pace: it meets all the others anyway."""
SAMPLED = 1500
"""Fires from which the pace of a frequent one is taken; every minute of a day is fewer."""
MOST = 20_000
"""Fires that are told one by one."""

Hour = tuple[date, int]
"""A day and an hour on the wall clock."""


class Fire(Struct, frozen=True):
    """`meets`: an earlier run would be unfinished, and the overlap makes no other run for this tick."""

    at: float
    schedule: str
    task: str
    meets: bool = False


class Pace(Struct, frozen=True):
    """A schedule that fires too often to be told fire by fire."""

    schedule: str
    task: str
    per_day: int


class Collision(Struct, frozen=True):
    """Schedules that fire in the same minute, and each minute in which they do."""

    schedules: tuple[str, ...]
    minutes: tuple[float, ...]


class Forecast(Struct, frozen=True):
    """From `start` to `end`; `fires` are told to `until`, if there are too many. `counts` and `seats` go by the hour:
    how many of these fires, and how many seats all schedules keep busy in the mean. The triggers of `unreadable` are
    of a newer version."""

    start: float
    end: float
    until: float
    fires: Sequence[Fire]
    frequent: Sequence[Pace]
    collisions: Sequence[Collision]
    counts: Mapping[Hour, int]
    seats: Mapping[Hour, float]
    unreadable: Sequence[str] = ()


def forecast(
    schedules: Sequence[Schedule], durations: Mapping[str, float], start: float, end: float, zone: tzinfo
) -> Forecast:
    """What these schedules will do if nothing changes; the paused ones do nothing. `durations` are by task."""
    hours = _Hours(zone)
    streams: list[Iterator[Fire]] = []
    frequent: list[Pace] = []
    unreadable: list[str] = []
    for schedule in schedules:
        if schedule.paused:
            continue
        seconds = durations.get(schedule.task, 0.0)
        try:
            sample = list(islice(_fires(schedule, start, min(end, start + DAY)), SAMPLED))
            if len(sample) > FREQUENT:
                frequent.append(Pace(schedule.id, schedule.task, _paced(hours, schedule, sample, seconds, start, end)))
            else:
                streams.append(_met(schedule, _fires(schedule, start, end), seconds))
        except ValueError:
            unreadable.append(schedule.id)
    told = list(islice(heapq.merge(*streams, key=lambda fire: fire.at), MOST + 1))
    until = told[MOST].at if len(told) > MOST else end
    fires = told[:MOST]
    for fire in fires:
        hours.counts[hours.of(fire.at)[0]] += 1
        if not fire.meets:
            hours.busy(fire.at, min(end, fire.at + durations.get(fire.task, 0.0)))
    return Forecast(start, end, until, fires, frequent, collisions(fires), hours.counts, hours.seats, unreadable)


def collisions(fires: Sequence[Fire]) -> list[Collision]:
    """The most crowded first."""
    minutes: dict[float, set[str]] = defaultdict(set)
    for fire in fires:
        minutes[fire.at // MINUTE * MINUTE].add(fire.schedule)
    together: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for minute, names in minutes.items():
        if len(names) > 1:
            together[tuple(sorted(names))].append(minute)
    found = [Collision(names, tuple(sorted(at))) for names, at in together.items()]
    return sorted(found, key=lambda c: (-len(c.schedules), -len(c.minutes), c.minutes[0]))


def _fires(schedule: Schedule, start: float, end: float) -> Iterator[Fire]:
    """After `start`; with the jitter that each tick has. ValueError, if at all, before the first."""
    timing = Timing.of(schedule)
    nominal = timing.next_after(start)
    while nominal is not None and nominal <= end:
        yield Fire(timing.fires_at(nominal), schedule.id, schedule.task)
        try:
            nominal = timing.next_after(nominal)
        except ValueError:  # its exclusions leave nothing more
            return


def _met(schedule: Schedule, fires: Iterator[Fire], seconds: float) -> Iterator[Fire]:
    """Which of the fires find the run before them unfinished."""
    free = 0.0
    for fire in fires:
        begin = max(fire.at, free) if schedule.overlap == "queue" else fire.at
        meets = schedule.overlap != "allow" and (begin - fire.at > seconds or begin < free)
        if not meets:
            free = begin + seconds
        yield Fire(fire.at, fire.schedule, fire.task, meets)


def _paced(
    hours: "_Hours", schedule: Schedule, sample: Sequence[Fire], seconds: float, start: float, end: float
) -> int:
    """Takes the seats of a frequent schedule: each day like the first, or evenly if a day has more fires than were
    looked at. How many it has."""
    whole_day = len(sample) < SAMPLED
    rate = (len(sample) - 1) / max(1.0, sample[-1].at - sample[0].at)
    per_hour: dict[int, float] = defaultdict(float)
    for fire in sample:
        per_hour[hours.of(fire.at)[0][1]] += 1
    at = start
    while at < end:
        hour, left = hours.of(at)
        left = min(left, end - at)
        count = per_hour[hour[1]] * left / HOUR if whole_day else rate * left
        busy = count * seconds / left
        hours.seats[hour] += (busy if schedule.overlap == "allow" else min(1.0, busy)) * left / HOUR
        at += left
    return len(sample) if whole_day else round(rate * DAY)


class _Hours:
    """Counts by the hour of a wall clock."""

    def __init__(self, zone: tzinfo) -> None:
        self.counts: dict[Hour, int] = defaultdict(int)
        self.seats: dict[Hour, float] = defaultdict(float)
        self._zone = zone

    def of(self, at: float) -> tuple[Hour, float]:
        """The hour, and how many seconds of it are left."""
        moment = datetime.fromtimestamp(at, self._zone)
        past = moment.minute * MINUTE + moment.second + moment.microsecond / 1e6
        return (moment.date(), moment.hour), max(0.001, HOUR - past)

    def busy(self, begin: float, end: float) -> None:
        """One seat, from one instant to the other."""
        while begin < end:
            hour, left = self.of(begin)
            taken = min(left, end - begin)
            self.seats[hour] += taken / HOUR
            begin += taken
