"""Every: a fixed rate from an anchor, or every n days, weeks or months at a time of day."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from functools import lru_cache
from math import gcd

from rota.domain.triggers.base import EPOCH, SECOND, TICK, ZERO, Trigger, as_utc, shifted, since_epoch, spell_instant
from rota.domain.triggers.day_steps import SHORTEST_STEP, DaySteps, read_clock, read_steps
from rota.domain.triggers.dst import next_once, previous_once
from rota.domain.triggers.durations import read_span, spell_duration, spell_jitter, word_duration, word_jitter
from rota.domain.triggers.words import with_zone
from rota.domain.triggers.zones import FIRST, LAST, find_zone, zone_name

SHORTEST = timedelta(milliseconds=100)
DAY = 86_400
WHOLE_DAY = (1 << DAY) - 1


@dataclass(frozen=True, slots=True, init=False)
class Every(Trigger):
    """Fires at anchor, anchor + interval, anchor + 2 x interval, …. Late runs and restarts do not shift it.

    The anchor is set when the schedule is first put. `jitter` is the most by which a fire is moved later. The schedule
    and the nominal time decide by how much (see `jittered`), so it is the same in every process.

    With `at`, it fires every so many `days`, `weeks` or `months` at that time on the wall clock of `tz`, counted from
    the day of the anchor: `Every(days=2, at="09:00", tz="Europe/Paris")`. A month without the day of the anchor has its
    last day instead. At clock changes it does what cron does: a time inside the gap fires at the end of the gap, a
    repeated time fires once.
    """

    interval: timedelta
    jitter: timedelta
    anchor: datetime | None
    count: int
    unit: str
    at: time | None
    tz: str | None

    def __init__(
        self,
        seconds: float | timedelta = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        weeks: float = 0,
        months: int = 0,
        *,
        at: str | time | None = None,
        tz: str | tzinfo | None = None,
        jitter: float | timedelta = 0,
        anchor: datetime | None = None,
    ) -> None:
        count, unit, clock = 0, "", None
        if at is None:
            if months or tz is not None:
                given = "months" if months else "tz"
                raise ValueError(f'Every: {given}= needs a time of day, such as at="09:00"')
            interval = _interval(seconds, minutes=minutes, hours=hours, days=days, weeks=weeks)
        else:
            if seconds or minutes or hours:
                raise ValueError("Every: at= goes with days, weeks or months; for an hour's pace leave at= out")
            count, unit = read_steps(days=days, weeks=weeks, months=months)
            interval, clock = count * SHORTEST_STEP[unit], read_clock(at)
        spread = read_span("Every", "jitter", jitter)
        if interval < SHORTEST:
            raise ValueError(f"Every: the interval is at least {SHORTEST.total_seconds()} s, not {interval}")
        if not ZERO <= spread < interval:
            raise ValueError(f"Every: jitter={spread} is not from 0 to less than the interval, {interval}")
        since = None if anchor is None else as_utc(anchor)
        self._set(interval=interval, jitter=spread, anchor=since, count=count, unit=unit, at=clock, tz=zone_name(tz))

    def next_after(self, instant: datetime) -> datetime | None:
        if self.at is not None:
            since, anchor = since_epoch(instant), self._since_anchor()
            second = (anchor - TICK if since < anchor else since) // SECOND + 1
            return self._instant(next_once(self._steps(), find_zone(self.tz), max(second, FIRST + 1), False))
        behind = since_epoch(instant) - self._since_anchor()
        return self._tick(0 if behind < ZERO else behind // self.interval + 1)

    def previous_before(self, instant: datetime) -> datetime | None:
        if self.at is not None:
            second = -(-since_epoch(instant) // SECOND) - 1
            fire = (
                previous_once(self._steps(), find_zone(self.tz), min(second, LAST), False) if second > FIRST else None
            )
            return None if fire is None or fire * SECOND < self._since_anchor() else self._instant(fire)
        behind = since_epoch(instant) - self._since_anchor()
        return self._tick((behind - TICK) // self.interval) if behind > ZERO else None

    def _since_anchor(self) -> timedelta:
        if self.anchor is None:
            raise ValueError(
                f"'{self}' has no anchor: the store fills it in at the first put; or use .anchored(instant)"
            )
        return self.anchor - EPOCH

    def _steps(self) -> DaySteps:
        at, first = self.at or time(0), self._since_anchor() // SECOND
        offset = find_zone(self.tz).stretch(min(max(first, FIRST + 1), LAST)).offset
        return DaySteps((first + offset) // DAY, self.count, self.unit, at.hour * 3600 + at.minute * 60 + at.second)

    def _instant(self, second: int | None) -> datetime | None:
        return None if second is None or second > LAST else EPOCH + second * SECOND

    def _tick(self, number: int) -> datetime | None:
        try:
            return EPOCH + (self._since_anchor() + number * self.interval)
        except OverflowError:
            return None

    @property
    def whole(self) -> bool:
        if self.at is not None:
            return True
        return self.anchor is not None and not self.anchor.microsecond and not self.interval % SECOND

    def seconds_of(self, day: int) -> int:
        """Return the fires at whole seconds. If the interval has a fraction, one of several fires is at one."""
        if self.at is not None:
            return Trigger.seconds_of(self, day)
        anchor, interval, second = self._since_anchor() // TICK, self.interval // TICK, SECOND // TICK
        shared = gcd(interval, second)
        if anchor % shared:
            return 0
        turns = second // shared
        number = -anchor // shared * pow(interval // shared, -1, turns) % turns if turns > 1 else 0
        first, step = (anchor + number * interval) // second, interval * turns // second
        place = max(first - day * DAY, (first - day * DAY) % step)
        return _progression(step) << place & WHOLE_DAY if place < DAY else 0

    def anchored(self, instant: datetime) -> "Every":
        return self if self.anchor else self._with(self.tz, instant)

    def in_zone(self, tz: str) -> "Every":
        return self._with(tz, self.anchor) if self.at is not None and self.tz is None else self

    def _with(self, tz: str | None, anchor: datetime | None) -> "Every":
        if self.at is None:
            return Every(self.interval, jitter=self.jitter, anchor=anchor)
        steps: dict[str, int] = {self.unit: self.count}
        return Every(**steps, at=self.at, tz=tz, jitter=self.jitter, anchor=anchor)

    def cadence(self) -> tuple[str, ...]:
        if self.anchor:
            return ()
        return (spell_duration(self.interval) if self.at is None else f"{self.count} {self.unit}",)

    def spread(self, nominal: datetime | None = None) -> timedelta:
        return self.jitter

    def jittered(self, nominal: datetime, seed: str) -> datetime:
        return shifted(nominal, self.jitter, seed) if self.jitter else nominal

    def to_text(self) -> str:
        anchor = f" anchor {spell_instant(self.anchor)}" if self.anchor else ""
        if self.at is not None:
            zone = f" {self.tz}" if self.tz else ""
            return f"every {self._often()} at {_clock(self.at)}{zone}{spell_jitter(self.jitter)}{anchor}"
        return f"every {spell_duration(self.interval)}{spell_jitter(self.jitter)}{anchor}"

    def _often(self) -> str:
        return f"{self.count} {self.unit if self.count > 1 else self.unit[:-1]}"

    def describe(self) -> str:
        if self.at is not None:
            often = self._often().removeprefix("1 ")
            return with_zone(f"every {often} at {_clock(self.at)}", self.tz) + word_jitter(self.jitter)
        words = word_duration(self.interval)
        if words.startswith("1 ") and words.count(" ") == 1:
            words = words.removeprefix("1 ")
        return f"every {words}{word_jitter(self.jitter)}"


def _interval(seconds: float | timedelta, **counts: float) -> timedelta:
    parts = [read_span("Every", "interval", seconds)]
    parts += [read_span("Every", "interval", count, unit) for unit, count in counts.items()]
    try:
        return sum(parts, ZERO)
    except OverflowError:
        raise ValueError("Every: the interval is too long") from None


def _clock(at: time) -> str:
    return at.isoformat("seconds" if at.second else "minutes")


@lru_cache(maxsize=256)
def _progression(step: int) -> int:
    """Return the bits 0, `step`, 2 x `step`, … of a day."""
    found, width = 1, step
    while width < DAY:
        found |= found << width
        width *= 2
    return found & WHOLE_DAY
