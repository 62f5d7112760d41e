"""Timing: a schedule's trigger between its start and its end, in the seconds that stores keep."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from rota.domain.run import after
from rota.domain.schedule import Missed, Schedule
from rota.domain.triggers import Every, Excluding, Trigger

GRAIN = 0.00002
"""Stored instants are rounded: two of the same tick are no farther apart, in seconds."""
_GRAIN = timedelta(seconds=GRAIN)
COUNTED = 100
"""Ticks that are counted one by one; beyond, a range says "at least"."""
SHARED = 20_000
"""Answers that are kept: schedules that fire together mostly have the same trigger, and stand at the same tick."""


def moment(instant: float) -> datetime:
    return datetime.fromtimestamp(instant, UTC)


def stored(moment: datetime) -> float:
    """To the grain of stored instants, and never before the moment itself."""
    return after(moment.timestamp(), 0)


def upcoming(schedule: Schedule, now: float) -> float | None:
    """Its next tick after `now`, also by a copy that was read before the last ones; None if it is paused, ended or
    cannot be read here."""
    if schedule.paused or schedule.next_at is None or schedule.next_at > now:
        return None if schedule.paused else schedule.next_at
    try:
        return Timing.of(schedule).next_after(now)
    except ValueError:
        return None


def shown(instant: float | None) -> str:
    """For people, to the second: local time with its offset, as everywhere in logs and on the command line."""
    if instant is None:
        return "never"
    try:
        return datetime.fromtimestamp(instant).astimezone().isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):  # no calendar has this year
        return str(instant)


def missed_words(missed: Missed) -> str:
    """How many ticks were missed, from when to when."""
    if missed.note or missed.count == 1:
        return missed.note or shown(missed.first)
    count = f"at least {missed.count:,}" if missed.more else f"{missed.count:,}"
    return f"{count} ticks from {shown(missed.first)} to {shown(missed.last)}"


class Timing:
    def __init__(self, trigger: Trigger, seed: str, start: float | None = None, end: float | None = None) -> None:
        self.trigger = trigger
        self._seed = seed
        self._start = start
        self._end = end

    @classmethod
    def of(cls, schedule: Schedule) -> "Timing":
        """Raises ValueError where the trigger's text cannot be read here."""
        return cls(_read(schedule.trigger, schedule.anchor), schedule.id, schedule.start, schedule.end)

    def next_after(self, instant: float) -> float | None:
        return _next_after(self.trigger, instant, self._start, self._end)

    def previous_before(self, instant: float) -> float | None:
        return _previous_before(self.trigger, instant, self._start, self._end)

    def fires_at(self, nominal: float) -> float:
        """With the jitter that is this tick's own."""
        at = moment(nominal)
        jittered = self.trigger.jittered(at, self._seed)
        return nominal if jittered is at else stored(jittered)

    def latest(self, now: float) -> float | None:
        """The last nominal time whose moment to fire has come."""
        found = self.previous_before(now + 2 * GRAIN)
        while found is not None and self.fires_at(found) > now:
            found = self.previous_before(found)
        return found

    def settled(self, nominal: float) -> float | None:
        """Where a nominal time lies that was computed elsewhere: itself, or the nearest tick if zones have changed
        since, so that what moved is followed and nothing that is past comes again."""
        before = self.previous_before(nominal + 2 * GRAIN)
        if before == nominal:
            return nominal
        behind = self.next_after(nominal)
        if before is None or behind is None:
            return behind if before is None else before
        return before if nominal - before <= behind - nominal else behind

    def count(self, first: float, last: float) -> tuple[int, bool]:
        """How many ticks from one to the other, and whether there are more than counted."""
        if isinstance(self.trigger, Every):
            return round((last - first) / self.trigger.interval.total_seconds()) + 1, False
        found, at = 1, first
        while at < last and found < COUNTED:
            behind = self.next_after(at)
            if behind is None:
                break
            at, found = behind, found + 1
        return found, at < last


def interval_of(schedule: Schedule) -> timedelta | None:
    """The interval of a schedule at a fixed rate whose anchor its trigger does not say."""
    trigger = _read(schedule.trigger, None)
    every = trigger.trigger if isinstance(trigger, Excluding) else trigger
    return every.interval if isinstance(every, Every) and every.anchor is None else None


@lru_cache(maxsize=SHARED)
def _next_after(trigger: Trigger, instant: float, start: float | None, end: float | None) -> float | None:
    since = moment(instant)
    if start is not None and since < moment(start):
        since = moment(start) - _GRAIN
    found = trigger.next_after(since)
    return None if found is None or (end is not None and found > moment(end)) else stored(found)


@lru_cache(maxsize=SHARED)
def _previous_before(trigger: Trigger, instant: float, start: float | None, end: float | None) -> float | None:
    until = moment(instant) - _GRAIN
    if end is not None and until > moment(end):
        until = moment(end) + _GRAIN
    found = trigger.previous_before(until)
    return None if found is None or (start is not None and found < moment(start)) else stored(found)


@lru_cache(maxsize=20_000)
def _read(text: str, anchor: float | None) -> Trigger:
    trigger = Trigger.parse(text)
    return trigger if anchor is None else trigger.anchored(moment(anchor))
