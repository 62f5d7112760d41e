"""Trigger: a pure rule that says when to fire, and its text."""

import hashlib
from abc import ABC, abstractmethod
from datetime import UTC, datetime, timedelta
from typing import Self

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
ZERO = timedelta(0)


class Trigger(ABC):
    """A rule that says when to fire. It is a value: frozen, hashable, and equal to a trigger with the same text.

    Instants are aware datetimes; returned ones are in UTC. `str(trigger)` is the text that `Trigger.parse` reads.
    """

    __slots__ = ()

    @abstractmethod
    def next_after(self, instant: datetime) -> datetime | None:
        """Return the first fire strictly after `instant`, or None."""

    @abstractmethod
    def previous_before(self, instant: datetime) -> datetime | None:
        """Return the last fire strictly before `instant`, or None."""

    @abstractmethod
    def to_text(self) -> str:
        """Return the text that `Trigger.parse` reads. Stores keep this text."""

    @abstractmethod
    def describe(self) -> str:
        """Return the trigger in words for people."""

    def upcoming(self, start: datetime, n: int) -> list[datetime]:
        """Return the next `n` fires strictly after `start`, or fewer if the trigger ends before."""
        fires: list[datetime] = []
        fire = self.next_after(start)
        while fire is not None and len(fires) < n:
            fires.append(fire)
            fire = self.next_after(fire)
        return fires

    def fires_at(self, instant: datetime) -> bool:
        instant = as_utc(instant)  # in a repeated hour, a datetime of another zone equals no other datetime
        return self.next_after(instant - TICK) == instant

    @property
    def whole(self) -> bool:
        """Whether the trigger fires at whole seconds only."""
        return False

    def seconds_of(self, day: int) -> int:
        """Return the whole seconds of a UTC day at which the trigger fires, as a bit set: bit n is second n of the day.
        Days are counted from 1970-01-01."""
        start = EPOCH + day * DAY
        found, fire = 0, self.next_after(start - TICK)
        while fire is not None and fire < start + DAY:
            if not fire.microsecond:
                found |= 1 << (fire - start) // SECOND
            fire = self.next_after(fire)
        return found

    def excluding(self, *others: "Trigger") -> "Trigger":
        """Return this trigger without the instants at which any of `others` fires."""
        from rota.domain.triggers.combined import Excluding  # here, because that module imports this one

        for other in others:
            expect(Trigger, other, "excluding() takes triggers")
        return Excluding(self, others) if others else self

    def __or__(self, other: "Trigger") -> "Trigger":
        """`a | b` fires when `a` or `b` fires, once if both do."""
        from rota.domain.triggers.combined import Union

        expect(Trigger, other, "a | b takes triggers")
        return Union.of((self, other))

    def __and__(self, other: "Trigger") -> "Trigger":
        """`a & b` fires at the instants at which `a` and `b` both fire."""
        from rota.domain.triggers.combined import Intersection

        expect(Trigger, other, "a & b takes triggers")
        return Intersection.of((self, other))

    def in_zone(self, tz: str) -> "Trigger":
        """Return the trigger with the zone `tz`, if it has no zone."""
        return self

    def anchored(self, instant: datetime) -> "Trigger":
        """Return the trigger with the anchor `instant`, if it needs an anchor and has none."""
        return self

    def cadence(self) -> tuple[str, ...]:
        """Return the intervals that need an anchor. A schedule keeps its anchor as long as they are the same."""
        return ()

    def spread(self, nominal: datetime | None = None) -> timedelta:
        """Return the most by which jitter moves the fire of `nominal`, or any fire, later."""
        return ZERO

    def jittered(self, nominal: datetime, seed: str) -> datetime:
        """Return when to fire for a nominal time, with jitter: before the next nominal time. The same `seed` gives the
        same instant."""
        spread = self.spread(nominal)
        if not spread:
            return nominal
        following = self.next_after(nominal)
        return shifted(nominal, spread if following is None else min(spread, following - nominal), seed)

    @staticmethod
    def parse(text: str) -> "Trigger":
        """Return the trigger of a text: `every 15m jitter 30s`, `cron */15 7-22 * * * Europe/Paris`, `daily 09:00`, …
        or a bare cron line."""
        from rota.domain.triggers.spelling import parse  # here, because that module imports every kind of trigger

        return parse(text)

    def _set(self, **fields: object) -> None:
        """Set the fields of a frozen trigger, in its `__init__`."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return self.to_text()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


def expect(kind: type, value: object, rule: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{rule}, not {value!r}")


def since_epoch(instant: datetime) -> timedelta:
    """Return the time since EPOCH. Raise TypeError or ValueError for anything but an aware datetime."""
    expect(datetime, instant, "an instant is a datetime")
    if instant.utcoffset() is None:
        raise ValueError(f"{instant.isoformat()} names no zone; give it one, such as datetime(…, tzinfo=UTC)")
    return instant - EPOCH


def shifted(nominal: datetime, spread: timedelta, seed: str) -> datetime:
    """Return `nominal` moved later by less than `spread`. `seed` and the nominal time decide by how much."""
    digest = hashlib.blake2b(f"{seed}\n{as_utc(nominal).isoformat()}".encode(), digest_size=8).digest()
    return nominal + (int.from_bytes(digest) * (spread // TICK) >> 64) * TICK


def as_utc(instant: datetime) -> datetime:
    return EPOCH + since_epoch(instant)


def spell_instant(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
