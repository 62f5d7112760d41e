"""Union, Intersection, Excluding: triggers made of triggers.

A search tries a few fires first. If none of them is left, it goes on day by day, with the fires of each part as a bit
set of the seconds of the day: a year of excluded seconds is 365 days, not 31,536,000 fires.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from rota.domain.triggers.at_start import AtStart
from rota.domain.triggers.base import DAY, EPOCH, SECOND, TICK, ZERO, Trigger, since_epoch

PARTS_LIMIT = 200
TRIED = 24
"""Fires that are tried one by one before a search goes on day by day."""
TRIED_FRACTIONS = 200_000
"""Fires that are tried one by one where no part fires at whole seconds only."""
SPAN = timedelta(days=36_525)
"""How far a search goes. A fire further away counts as never."""
DAYS = 4000
"""Days with fires of the parts whose seconds a search compares. Eleven years without a fire count as never."""
DAY_SECONDS = 86_400
FIRST_DAY, LAST_DAY = (date.min.toordinal() - 719_162, date.max.toordinal() - 719_164)


class _Combined(Trigger):
    """A trigger made of `parts`."""

    __slots__ = ()

    @property
    @abstractmethod
    def parts(self) -> tuple[Trigger, ...]: ...

    @abstractmethod
    def _of(self, parts: tuple[Trigger, ...]) -> Trigger:
        """Return the same combination of other parts."""

    def in_zone(self, tz: str) -> Trigger:
        return self._of(tuple(part.in_zone(tz) for part in self.parts))

    def anchored(self, instant: datetime) -> Trigger:
        return self._of(tuple(part.anchored(instant) for part in self.parts))

    def cadence(self) -> tuple[str, ...]:
        return tuple(interval for part in self.parts for interval in part.cadence())

    def _text(self, word: str) -> str:
        return f" {word} ".join(f"({part})" if isinstance(part, _Combined) else str(part) for part in self.parts)


@dataclass(frozen=True, slots=True, init=False)
class _Several(_Combined):
    """A trigger made of several triggers, in which no trigger is twice."""

    triggers: tuple[Trigger, ...]

    def __init__(self, triggers: tuple[Trigger, ...]) -> None:
        self._set(triggers=_checked(triggers))

    @classmethod
    def of(cls, triggers: Iterable[Trigger]) -> Trigger:
        """Return the combination of `triggers`; the trigger itself if all are the same."""
        flat = [each for part in triggers for each in (part.triggers if isinstance(part, cls) else (part,))]
        first, *others = dict.fromkeys(flat)
        return cls((first, *others)) if others else first

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return self.triggers

    def _of(self, parts: tuple[Trigger, ...]) -> Trigger:
        return type(self).of(parts)


@dataclass(frozen=True, slots=True, init=False)
class Union(_Several):
    """Fires when one of `triggers` fires; made by `a | b`."""

    def next_after(self, instant: datetime) -> datetime | None:
        return min((fire for each in self.triggers if (fire := each.next_after(instant)) is not None), default=None)

    def previous_before(self, instant: datetime) -> datetime | None:
        return max(
            (fire for each in self.triggers if (fire := each.previous_before(instant)) is not None), default=None
        )

    @property
    def whole(self) -> bool:
        return all(each.whole for each in self.triggers)

    def seconds_of(self, day: int) -> int:
        found = 0
        for each in self.triggers:
            found |= each.seconds_of(day)
        return found

    def spread(self, nominal: datetime | None = None) -> timedelta:
        firing = (each for each in self.triggers if nominal is None or each.fires_at(nominal))
        return max((each.spread(nominal) for each in firing), default=ZERO)

    def to_text(self) -> str:
        return self._text("or")

    def describe(self) -> str:
        return " or ".join(_bracketed(each) for each in self.triggers)


@dataclass(frozen=True, slots=True, init=False)
class Intersection(_Several):
    """Fires at the instants at which all of `triggers` fire; made by `a & b`."""

    def next_after(self, instant: datetime) -> datetime | None:
        found, reached = self._together(instant, self._last_of_next, -TICK, self._tried)
        return found if reached is None else _later(self, reached, self._last_of_next)

    def previous_before(self, instant: datetime) -> datetime | None:
        found, reached = self._together(instant, self._first_of_previous, TICK, self._tried)
        return found if reached is None else _earlier(self, reached, self._first_of_previous)

    @property
    def _tried(self) -> int:
        return TRIED if self.whole else TRIED_FRACTIONS

    def _together(
        self, instant: datetime, beyond: Callable[[datetime], datetime | None], back: timedelta, tried: int
    ) -> tuple[datetime | None, datetime | None]:
        """Return the first instant beyond `instant` at which all fire, and how far the search came without one."""
        start, fire = instant, beyond(instant)
        for _ in range(tried):
            if fire is None or abs(fire - start) > SPAN:
                return None, None
            instant = _moved(fire, back)
            further = beyond(instant)
            if further == fire:
                return fire, None
            fire = further
        return None, instant if self.whole else None

    def _last_of_next(self, instant: datetime) -> datetime | None:
        fires = [each.next_after(instant) for each in self.triggers]
        return None if None in fires else max(fire for fire in fires if fire is not None)

    def _first_of_previous(self, instant: datetime) -> datetime | None:
        fires = [each.previous_before(instant) for each in self.triggers]
        return None if None in fires else min(fire for fire in fires if fire is not None)

    @property
    def whole(self) -> bool:
        return any(each.whole for each in self.triggers)

    def seconds_of(self, day: int) -> int:
        found = -1
        for each in self.triggers:
            found &= each.seconds_of(day)
            if not found:
                break
        return found

    def spread(self, nominal: datetime | None = None) -> timedelta:
        return max(each.spread(nominal) for each in self.triggers)

    def to_text(self) -> str:
        return self._text("and")

    def describe(self) -> str:
        first, *others = (_bracketed(each) for each in self.triggers)
        return f"{first}, only if also {' and '.join(others)}" if others else first


@dataclass(frozen=True, slots=True, init=False)
class Excluding(_Combined):
    """A trigger without the instants at which one of the others fires; made by `trigger.excluding(…)`."""

    trigger: Trigger
    others: tuple[Trigger, ...]

    def __init__(self, trigger: Trigger, others: tuple[Trigger, ...]) -> None:
        if isinstance(trigger, Excluding):
            others = trigger.others + others
            trigger = trigger.trigger
        self._set(trigger=_checked((trigger,))[0], others=_checked(tuple(dict.fromkeys(others))))

    @property
    def parts(self) -> tuple[Trigger, ...]:
        return (self.trigger, *self.others)

    def cadence(self) -> tuple[str, ...]:
        return self.trigger.cadence()

    def _of(self, parts: tuple[Trigger, ...]) -> Trigger:
        return Excluding(parts[0], parts[1:])

    def next_after(self, instant: datetime) -> datetime | None:
        found, reached = self._first_left(self.trigger.next_after, instant)
        return found if reached is None else _later(self, reached, self.trigger.next_after)

    def previous_before(self, instant: datetime) -> datetime | None:
        found, reached = self._first_left(self.trigger.previous_before, instant)
        return found if reached is None else _earlier(self, reached, self.trigger.previous_before)

    def _first_left(
        self, neighbour: Callable[[datetime], datetime | None], instant: datetime
    ) -> tuple[datetime | None, datetime | None]:
        """Return the first fire that is left, and how far the search came without one."""
        if self.trigger in self.others:
            return None, None  # a trigger that excludes itself never fires
        fire = neighbour(instant)
        start = fire
        for _ in range(TRIED if self.trigger.whole else TRIED_FRACTIONS):
            if fire is None or start is None or abs(fire - start) > SPAN:
                return None, None
            if not any(other.fires_at(fire) for other in self.others):
                return fire, None
            instant, fire = fire, neighbour(fire)
        return None, instant if self.trigger.whole else None

    @property
    def whole(self) -> bool:
        return self.trigger.whole

    def seconds_of(self, day: int) -> int:
        found = self.trigger.seconds_of(day)
        for other in self.others:
            if not found:
                break
            found &= ~other.seconds_of(day)
        return found

    def spread(self, nominal: datetime | None = None) -> timedelta:
        return self.trigger.spread(nominal)

    def jittered(self, nominal: datetime, seed: str) -> datetime:
        return self.trigger.jittered(nominal, seed)

    def to_text(self) -> str:
        return self._text("excluding")

    def describe(self) -> str:
        return f"{_bracketed(self.trigger)}, except {' and '.join(_bracketed(other) for other in self.others)}"


def _later(trigger: Trigger, instant: datetime, candidate: Callable[[datetime], datetime | None]) -> datetime | None:
    """Return the first fire at a whole second after `instant`, day by day. `candidate` returns an instant before which
    none is left to find."""
    since = since_epoch(instant)
    limit, day, skipped = min((since + SPAN).days, LAST_DAY), since.days, since.seconds + 1
    for _ in range(DAYS):
        if day > limit:
            break
        found = trigger.seconds_of(day) >> skipped
        if found:
            return EPOCH + day * DAY + (skipped + (found & -found).bit_length() - 1) * SECOND
        following = candidate(EPOCH + (day + 1) * DAY - TICK)
        if following is None:
            return None
        day, skipped = since_epoch(following).days, 0
    return None


def _earlier(trigger: Trigger, instant: datetime, candidate: Callable[[datetime], datetime | None]) -> datetime | None:
    """Return the last fire at a whole second before `instant`, as `_later` returns the first one after it."""
    since = since_epoch(instant) - TICK
    limit, day, kept = max((since - SPAN).days, FIRST_DAY), since.days, since.seconds + 1
    for _ in range(DAYS):
        if day < limit:
            break
        found = trigger.seconds_of(day) & (1 << kept) - 1
        if found:
            return EPOCH + day * DAY + (found.bit_length() - 1) * SECOND
        before = candidate(EPOCH + day * DAY)
        if before is None:
            return None
        day, kept = since_epoch(before).days, DAY_SECONDS
    return None


def _moved(instant: datetime, by: timedelta) -> datetime:
    try:
        return instant + by
    except OverflowError:
        return instant


def _checked(triggers: tuple[Trigger, ...]) -> tuple[Trigger, ...]:
    if any(isinstance(trigger, AtStart) for trigger in triggers):
        raise ValueError("AtStart cannot be combined with other triggers; give the task two schedules")
    if len(triggers) > PARTS_LIMIT:
        raise ValueError(f"a trigger combines at most {PARTS_LIMIT} others, not {len(triggers)}")
    return triggers


def _bracketed(trigger: Trigger) -> str:
    words = trigger.describe()
    return f"({words})" if isinstance(trigger, _Combined) else words
