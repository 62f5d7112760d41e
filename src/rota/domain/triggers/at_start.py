"""AtStart: when the first worker of an app starts, or once for each version of the app."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from rota.domain.triggers.base import Trigger
from rota.domain.triggers.durations import read_jitter, spell_jitter, word_jitter
from rota.domain.triggers.once import At

Each = Literal["start", "version"]
AT_START = "at start"
"""How the text of this trigger begins. The text of no other trigger does."""


@dataclass(frozen=True, slots=True, init=False)
class AtStart(Trigger):
    """Fires when a worker of the app starts and no other worker that knows the task is alive. With each="version", it
    fires once for each version of the app (`Rota(version=…)`).

    The trigger itself names no instant: the schedule has the instant of the last start (`begun`).
    """

    each: Each
    jitter: timedelta

    def __init__(self, *, each: Each = "start", jitter: float | timedelta = 0) -> None:
        if each not in ("start", "version"):
            raise ValueError(f'AtStart: each={each!r}; give each="version", or leave it out')
        self._set(each=each, jitter=read_jitter("AtStart", jitter))

    def next_after(self, instant: datetime) -> datetime | None:
        return None

    def previous_before(self, instant: datetime) -> datetime | None:
        return None

    def begun(self, instant: datetime) -> At:
        """Return the trigger of a start at `instant`."""
        return At(instant, jitter=self.jitter)

    def spread(self, nominal: datetime | None = None) -> timedelta:
        return self.jitter

    def to_text(self) -> str:
        version = " of each version" if self.each == "version" else ""
        return f"{AT_START}{version}{spell_jitter(self.jitter)}"

    def describe(self) -> str:
        what = "once for each version of the app" if self.each == "version" else "when the first worker starts"
        return f"{what}{word_jitter(self.jitter)}"
