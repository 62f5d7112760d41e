"""Trigger: a pure rule that says when to fire, and its text."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)
EXCLUDED_LIMIT = 200_000  # fires that are tried; more than the seconds of a weekend
EXCLUDED_SPAN = timedelta(days=36_525)


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

    def excluding(self, *others: "Trigger") -> "Trigger":
        """Return this trigger without the instants at which any of `others` fires.

        `a.excluding(a.excluding(b))` fires when `a` and `b` both fire: at every instant of `a` except those at which
        `b` does not fire.
        """
        for other in others:
            expect(Trigger, other, "excluding() takes triggers")
        return Excluding(self, others) if others else self

    def in_zone(self, tz: str) -> "Trigger":
        """Return the trigger with the zone `tz`, if it has no zone."""
        return self

    def anchored(self, instant: datetime) -> "Trigger":
        """Return the trigger with the anchor `instant`, if it needs an anchor and has none."""
        return self

    def jittered(self, nominal: datetime, seed: str) -> datetime:
        """Return when to fire for a nominal time, with jitter. The same `seed` gives the same instant."""
        return nominal

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


@dataclass(frozen=True, slots=True, init=False)
class Excluding(Trigger):
    """A trigger without the instants at which one of the others fires; made by `trigger.excluding(…)`."""

    trigger: Trigger
    others: tuple[Trigger, ...]

    def __init__(self, trigger: Trigger, others: tuple[Trigger, ...]) -> None:
        if isinstance(trigger, Excluding):
            others = trigger.others + others
            trigger = trigger.trigger
        self._set(trigger=trigger, others=tuple(dict.fromkeys(others)))

    def next_after(self, instant: datetime) -> datetime | None:
        return self._first_left(self.trigger.next_after, instant)

    def previous_before(self, instant: datetime) -> datetime | None:
        return self._first_left(self.trigger.previous_before, instant)

    def _first_left(self, neighbour: Callable[[datetime], datetime | None], instant: datetime) -> datetime | None:
        if self.trigger in self.others:
            return None  # a trigger that excludes itself never fires: no need to try EXCLUDED_LIMIT fires
        fire = neighbour(instant)
        for _ in range(EXCLUDED_LIMIT):
            if fire is None or not any(other.fires_at(fire) for other in self.others):
                return fire
            if abs(fire - instant) > EXCLUDED_SPAN:
                break
            fire = neighbour(fire)
        return None  # a fire so far away counts as never

    def in_zone(self, tz: str) -> Trigger:
        return Excluding(self.trigger.in_zone(tz), tuple(other.in_zone(tz) for other in self.others))

    def anchored(self, instant: datetime) -> Trigger:
        return Excluding(self.trigger.anchored(instant), tuple(other.anchored(instant) for other in self.others))

    def jittered(self, nominal: datetime, seed: str) -> datetime:
        return self.trigger.jittered(nominal, seed)

    def to_text(self) -> str:
        texts = (f"({other})" if isinstance(other, Excluding) else str(other) for other in self.others)
        return " excluding ".join((str(self.trigger), *texts))

    def describe(self) -> str:
        return f"{self.trigger.describe()}, except {' and '.join(other.describe() for other in self.others)}"


def expect(kind: type, value: object, rule: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{rule}, not {value!r}")


def since_epoch(instant: datetime) -> timedelta:
    """Return the time since EPOCH. Raise TypeError or ValueError for anything but an aware datetime."""
    expect(datetime, instant, "an instant is a datetime")
    if instant.utcoffset() is None:
        raise ValueError(f"{instant.isoformat()} names no zone; give it one, such as datetime(…, tzinfo=UTC)")
    return instant - EPOCH


def as_utc(instant: datetime) -> datetime:
    return EPOCH + since_epoch(instant)


def spell_instant(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")
