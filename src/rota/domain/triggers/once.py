"""At: one instant."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from rota.domain.triggers.base import Trigger, as_utc, spell_instant
from rota.domain.triggers.durations import read_jitter, spell_jitter, word_jitter


@dataclass(frozen=True, slots=True, init=False)
class At(Trigger):
    """Fires once, at `instant`."""

    instant: datetime
    jitter: timedelta

    def __init__(self, instant: datetime, *, jitter: float | timedelta = 0) -> None:
        self._set(instant=as_utc(instant), jitter=read_jitter("At", jitter))

    def next_after(self, instant: datetime) -> datetime | None:
        return self.instant if as_utc(instant) < self.instant else None

    def previous_before(self, instant: datetime) -> datetime | None:
        return self.instant if self.instant < as_utc(instant) else None

    def spread(self, nominal: datetime | None = None) -> timedelta:
        return self.jitter

    @property
    def whole(self) -> bool:
        return not self.instant.microsecond

    def to_text(self) -> str:
        return f"at {spell_instant(self.instant)}{spell_jitter(self.jitter)}"

    def describe(self) -> str:
        shown = self.instant.replace(tzinfo=None)
        precision = "auto" if shown.second or shown.microsecond else "minutes"
        return f"once, at {shown.isoformat(' ', precision)} UTC{word_jitter(self.jitter)}"
