"""Forecast: when schedules will fire, which of them fire in the same minute, and how many seats they need."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, tzinfo
from itertools import chain, islice

from msgspec import Struct

from rota.domain.rehearsal import FlowShape, PeriodStart, rehearse
from rota.domain.schedule import Schedule
from rota.domain.timing import Timing

DAY, HOUR, MINUTE = 86_400.0, 3600.0, 60.0
FREQUENT = 144
"""A schedule with more fires a day is shown by its pace, not fire by fire: it collides with all others anyway."""
SAMPLED = 1500
"""Number of fires from which the pace of a frequent schedule is computed; one a minute for a day is fewer."""
MOST = 20_000
"""Most fires that are listed."""

Hour = tuple[date, int]
"""A day and an hour on the wall clock."""


class Fire(Struct, frozen=True):
    """One fire of a schedule. `meets`: an earlier run is unfinished then, and the overlap makes no run for this
    tick."""

    at: float
    schedule: str
    task: str
    meets: bool = False


class Pace(Struct, frozen=True):
    """A schedule that fires too often to list each fire."""

    schedule: str
    task: str
    per_day: int


class Collision(Struct, frozen=True):
    """Schedules that fire in the same minute, and the minutes in which they do."""

    schedules: tuple[str, ...]
    minutes: tuple[float, ...]


class Forecast(Struct, frozen=True):
    """The forecast from `start` to `end`.

    If there are too many fires, `fires` lists them only to `until`. `counts` are the listed fires of each hour, `seats`
    the mean number of seats that all schedules need in each hour. `unreadable` are schedules whose trigger this version
    cannot read. A flow fires once per period; `flows` has the steps that it starts. `deadlines` make no runs.
    """

    start: float
    end: float
    until: float
    fires: Sequence[Fire]
    frequent: Sequence[Pace]
    collisions: Sequence[Collision]
    counts: Mapping[Hour, int]
    seats: Mapping[Hour, float]
    unreadable: Sequence[str] = ()
    flows: Sequence[PeriodStart] = ()
    deadlines: Sequence[Fire] = ()


def forecast(
    schedules: Sequence[Schedule],
    durations: Mapping[str, float],
    start: float,
    end: float,
    zone: tzinfo,
    flows: Mapping[str, FlowShape] | None = None,
) -> Forecast:
    """Return what the schedules will do if nothing changes. Paused schedules do nothing.

    `durations` has the usual seconds of a run by task, `flows` the flows by the name of their task.
    """
    merged = _Collector(durations, start, end, _Hours(zone), flows or {})
    for schedule in schedules:
        if not schedule.paused:
            merged.add(schedule)
    return merged.forecast()


class _Collector:
    """Collects the fires of one schedule after the other."""

    def __init__(
        self,
        durations: Mapping[str, float],
        start: float,
        end: float,
        hours: "_Hours",
        flows: Mapping[str, FlowShape],
    ) -> None:
        self._durations, self._start, self._end = durations, start, end
        self._hours, self._flows = hours, flows
        self._streams: list[Iterator[Fire]] = []
        self._deadlines: list[Iterator[Fire]] = []
        self._periods: list[PeriodStart] = []
        self._frequent: list[Pace] = []
        self._unreadable: list[str] = []

    def add(self, schedule: Schedule) -> None:
        try:
            if schedule.deadline is not None:
                self._deadlines.append(_checked(_fires(schedule, self._start, self._end)))
            elif schedule.task in self._flows:
                self._add_flow(schedule, self._flows[schedule.task])
            else:
                self._add_plain(schedule)
        except ValueError:
            self._unreadable.append(schedule.id)

    def _add_flow(self, schedule: Schedule, flow: FlowShape) -> None:
        """Only the first tick of a period starts its steps; the later ticks look whether a step is missing."""
        periods = list(islice(rehearse(schedule, flow, self._durations, self._start, self._end), MOST))
        self._periods += periods
        self._streams.append(Fire(each.at, schedule.id, schedule.task) for each in periods if not each.begun)

    def _add_plain(self, schedule: Schedule) -> None:
        start, end, seconds = self._start, self._end, self._durations.get(schedule.task, 0.0)
        sample = list(islice(_fires(schedule, start, min(end, start + DAY)), SAMPLED))
        if len(sample) > FREQUENT:
            per_day = _paced(self._hours, schedule, sample, seconds, start, end)
            self._frequent.append(Pace(schedule.id, schedule.task, per_day))
        else:
            self._streams.append(_met(schedule, _fires(schedule, start, end), seconds))

    def forecast(self) -> Forecast:
        merged = list(islice(heapq.merge(*self._streams, key=lambda fire: fire.at), MOST + 1))
        fires = merged[:MOST]
        for fire in fires:
            self._hours.counts[self._hours.of(fire.at)[0]] += 1
            if not fire.meets:
                self._hours.busy(fire.at, min(self._end, fire.at + self._durations.get(fire.task, 0.0)))
        for step in (step for period in self._periods for step in period.steps):
            self._hours.busy(step.begin, min(self._end, step.end))
        return Forecast(
            start=self._start,
            end=self._end,
            until=merged[MOST].at if len(merged) > MOST else self._end,
            fires=fires,
            frequent=self._frequent,
            collisions=collisions(fires),
            counts=self._hours.counts,
            seats=self._hours.seats,
            unreadable=self._unreadable,
            flows=sorted(self._periods, key=lambda period: period.at),
            deadlines=list(islice(heapq.merge(*self._deadlines, key=lambda fire: fire.at), MOST)),
        )


def collisions(fires: Sequence[Fire]) -> list[Collision]:
    """Return the minutes in which several schedules fire, the most crowded first."""
    minutes: dict[float, set[str]] = defaultdict(set)
    for fire in fires:
        minutes[fire.at // MINUTE * MINUTE].add(fire.schedule)
    together: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for minute, names in minutes.items():
        if len(names) > 1:
            together[tuple(sorted(names))].append(minute)
    found = [Collision(names, tuple(sorted(at))) for names, at in together.items()]
    return sorted(found, key=lambda c: (-len(c.schedules), -len(c.minutes), c.minutes[0]))


def _checked(fires: Iterator[Fire]) -> Iterator[Fire]:
    """Return the same fires, and raise the ValueError of the first one here."""
    first = list(islice(fires, 1))
    return chain(first, fires)


def _fires(schedule: Schedule, start: float, end: float) -> Iterator[Fire]:
    """Yield the fires after `start` until `end`, with jitter. A ValueError comes before the first fire."""
    timing = Timing.of(schedule)
    nominal = timing.next_after(start)
    while nominal is not None and nominal <= end:
        yield Fire(timing.fires_at(nominal), schedule.id, schedule.task)
        try:
            nominal = timing.next_after(nominal)
        except ValueError:  # its exclusions exclude all later fires
            return


def _met(schedule: Schedule, fires: Iterator[Fire], seconds: float) -> Iterator[Fire]:
    """Yield the fires with `meets` set where the run before them is unfinished."""
    free = 0.0
    for fire in fires:
        begin = max(fire.at, free) if schedule.overlap in ("queue", "buffer") else fire.at
        meets = schedule.overlap not in ("allow", "replace", "buffer") and (begin - fire.at > seconds or begin < free)
        if not meets:
            free = begin + seconds
        yield Fire(fire.at, fire.schedule, fire.task, meets)


def _paced(
    hours: "_Hours", schedule: Schedule, sample: Sequence[Fire], seconds: float, start: float, end: float
) -> int:
    """Add the seats of a frequent schedule and return its fires per day.

    Each day is taken like the first one, or evenly if the first day has more fires than `sample`.
    """
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
    """Fires and seats by the hour of a wall clock."""

    def __init__(self, zone: tzinfo) -> None:
        self.counts: dict[Hour, int] = defaultdict(int)
        self.seats: dict[Hour, float] = defaultdict(float)
        self._zone = zone

    def of(self, at: float) -> tuple[Hour, float]:
        """Return the hour of an instant, and how many seconds of the hour are left."""
        moment = datetime.fromtimestamp(at, self._zone)
        past = moment.minute * MINUTE + moment.second + moment.microsecond / 1e6
        return (moment.date(), moment.hour), max(0.001, HOUR - past)

    def busy(self, begin: float, end: float) -> None:
        """Count one seat as busy from `begin` to `end`."""
        while begin < end:
            hour, left = self.of(begin)
            taken = min(left, end - begin)
            self.seats[hour] += taken / HOUR
            begin += taken
