"""Timing: the trigger of a schedule between its start and its end, in stored seconds."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from rota.domain.run import after
from rota.domain.schedule import Missed, Schedule
from rota.domain.triggers import AtStart, Every, Trigger

GRAIN = 0.00002
"""Stored instants are rounded: two instants that differ by fewer seconds than this are of the same tick."""
_GRAIN = timedelta(seconds=GRAIN)
COUNTED = 100
"""Ticks that `count` counts one by one. A range of more ticks says "at least"."""
SHARED = 20_000
"""Size of the caches: schedules that fire together mostly have the same trigger and the same next tick."""


def moment(instant: float) -> datetime:
    return datetime.fromtimestamp(instant, UTC)


def stored(moment: datetime) -> float:
    """Return `moment` in stored seconds, never rounded down."""
    return after(moment.timestamp(), 0)


def upcoming(schedule: Schedule, now: float) -> float | None:
    """Return the next tick of a schedule after `now`. The copy of the schedule may be older than its last tick.

    None if the schedule is paused or ended, or if this version cannot read its trigger.
    """
    if schedule.paused or schedule.next_at is None or schedule.next_at > now:
        return None if schedule.paused else schedule.next_at
    try:
        return Timing.of(schedule).next_after(now)
    except ValueError:
        return None


def shown(instant: float | None) -> str:
    """Return an instant as text for people, to the second: local time with its offset, as in logs and on the command
    line."""
    if instant is None:
        return "never"
    try:
        return datetime.fromtimestamp(instant).astimezone().isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):  # datetime cannot represent this year
        return str(instant)


def missed_words(missed: Missed) -> str:
    """Return in words how many ticks were missed, from when to when."""
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
        """Raise ValueError if this version cannot read the text of the trigger."""
        trigger = _read(schedule.trigger, schedule.anchor)
        if isinstance(trigger, AtStart) and schedule.start is not None:
            trigger = trigger.begun(moment(schedule.start))
        return cls(trigger, schedule.id, schedule.start, schedule.end)

    def next_after(self, instant: float) -> float | None:
        return _next_after(self.trigger, instant, self._start, self._end)

    def previous_before(self, instant: float) -> float | None:
        return _previous_before(self.trigger, instant, self._start, self._end)

    def fires_at(self, nominal: float) -> float:
        """Return when to fire for a nominal time: with the jitter of this tick, which is always the same."""
        at = moment(nominal)
        jittered = self.trigger.jittered(at, self._seed)
        return nominal if jittered is at else stored(jittered)

    def latest(self, now: float) -> float | None:
        """Return the last nominal time whose time to fire has come."""
        found = self.previous_before(now + 2 * GRAIN)
        while found is not None and self.fires_at(found) > now:
            found = self.previous_before(found)
        return found

    def settled(self, nominal: float) -> float | None:
        """Return the tick that a stored nominal time means now: itself, or the nearest tick if the rules of its zone
        have changed since it was stored. So a moved tick is followed, and no past tick comes again."""
        before = self.previous_before(nominal + 2 * GRAIN)
        if before == nominal:
            return nominal
        behind = self.next_after(nominal)
        if before is None or behind is None:
            return behind if before is None else before
        return before if nominal - before <= behind - nominal else behind

    def count(self, first: float, last: float) -> tuple[int, bool]:
        """Return how many ticks there are from `first` to `last`, and whether there are more than that."""
        if isinstance(self.trigger, Every) and self.trigger.at is None:
            return round((last - first) / self.trigger.interval.total_seconds()) + 1, False
        found, at = 1, first
        while at < last and found < COUNTED:
            behind = self.next_after(at)
            if behind is None:
                break
            at, found = behind, found + 1
        return found, at < last


def cadence_of(schedule: Schedule) -> tuple[str, ...]:
    """Return the intervals of the `Every` triggers without an anchor of their own."""
    return _read(schedule.trigger, None).cadence()


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
