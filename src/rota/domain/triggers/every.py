"""Every: a fixed rate from an anchor."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import gcd

from rota.domain.triggers.base import EPOCH, SECOND, TICK, ZERO, Trigger, as_utc, shifted, since_epoch, spell_instant
from rota.domain.triggers.durations import read_span, spell_duration, spell_jitter, word_duration, word_jitter

SHORTEST = timedelta(milliseconds=100)
DAY = 86_400
WHOLE_DAY = (1 << DAY) - 1


@dataclass(frozen=True, slots=True, init=False)
class Every(Trigger):
    """Fires at anchor, anchor + interval, anchor + 2 x interval, …. Late runs and restarts do not shift it.

    The anchor is set when the schedule is first put. `jitter` is the most by which a fire is moved later. The schedule
    and the nominal time decide by how much (see `jittered`), so it is the same in every process.
    """

    interval: timedelta
    jitter: timedelta
    anchor: datetime | None

    def __init__(
        self,
        seconds: float | timedelta = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        *,
        jitter: float | timedelta = 0,
        anchor: datetime | None = None,
    ) -> None:
        parts = [read_span("Every", "interval", seconds)]
        for unit, count in (("minutes", minutes), ("hours", hours), ("days", days)):
            parts.append(read_span("Every", "interval", count, unit))
        try:
            interval = sum(parts, ZERO)
        except OverflowError:
            raise ValueError("Every: the interval is too long") from None
        spread = read_span("Every", "jitter", jitter)
        if interval < SHORTEST:
            raise ValueError(f"Every: the interval is at least {SHORTEST.total_seconds()} s, not {interval}")
        if not ZERO <= spread < interval:
            raise ValueError(f"Every: jitter={spread} is not from 0 to less than the interval, {interval}")
        self._set(interval=interval, jitter=spread, anchor=None if anchor is None else as_utc(anchor))

    def next_after(self, instant: datetime) -> datetime | None:
        behind = since_epoch(instant) - self._since_anchor()
        return self._tick(0 if behind < ZERO else behind // self.interval + 1)

    def previous_before(self, instant: datetime) -> datetime | None:
        behind = since_epoch(instant) - self._since_anchor()
        return self._tick((behind - TICK) // self.interval) if behind > ZERO else None

    def _since_anchor(self) -> timedelta:
        if self.anchor is None:
            raise ValueError(
                f"'{self}' has no anchor: the store fills it in at the first put; or use .anchored(instant)"
            )
        return self.anchor - EPOCH

    def _tick(self, number: int) -> datetime | None:
        try:
            return EPOCH + (self._since_anchor() + number * self.interval)
        except OverflowError:
            return None

    @property
    def whole(self) -> bool:
        return self.anchor is not None and not self.anchor.microsecond and not self.interval % SECOND

    def seconds_of(self, day: int) -> int:
        """Return the fires at whole seconds. If the interval has a fraction, one of several fires is at one."""
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
        return self if self.anchor else Every(self.interval, jitter=self.jitter, anchor=instant)

    def cadence(self) -> tuple[str, ...]:
        return () if self.anchor else (spell_duration(self.interval),)

    def spread(self, nominal: datetime | None = None) -> timedelta:
        return self.jitter

    def jittered(self, nominal: datetime, seed: str) -> datetime:
        return shifted(nominal, self.jitter, seed) if self.jitter else nominal

    def to_text(self) -> str:
        anchor = f" anchor {spell_instant(self.anchor)}" if self.anchor else ""
        return f"every {spell_duration(self.interval)}{spell_jitter(self.jitter)}{anchor}"

    def describe(self) -> str:
        words = word_duration(self.interval)
        if words.startswith("1 ") and words.count(" ") == 1:
            words = words.removeprefix("1 ")
        return f"every {words}{word_jitter(self.jitter)}"


@lru_cache(maxsize=256)
def _progression(step: int) -> int:
    """Return the bits 0, `step`, 2 x `step`, … of a day."""
    found, width = 1, step
    while width < DAY:
        found |= found << width
        width *= 2
    return found & WHOLE_DAY
