"""What lint looks at: a schedule as far as it is known, and how close its fires are."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from msgspec import Struct

from rota.domain.policy import Retry
from rota.domain.schedule import CatchUp, Overlap
from rota.domain.triggers import Cron, DailyAt, Every, Excluding, Monthly, Trigger, Weekly
from rota.domain.triggers.base import as_utc
from rota.domain.triggers.durations import word_duration

SAMPLE = 100
"""Fires that are looked at to see how close they are."""


class LintTarget(Struct, frozen=True, kw_only=True):
    """A schedule; None for what is not known, or was left to its default. Times are seconds."""

    trigger: Trigger
    zone: str | None = None
    """The app's: taken where the trigger names none."""
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None
    grace: float | None = None
    duration: float | None = None
    """What a run usually takes."""
    timeout: float | None = None
    retry: Retry = Retry()

    def seen(self, now: datetime) -> "View":
        now = as_utc(now)
        trigger = self.trigger if self.zone is None else self.trigger.in_zone(self.zone)
        return View(self, now, trigger, *_first_fires(trigger.anchored(now), now))


class View(Struct, frozen=True):
    """A subject at a moment, with what several rules ask for worked out."""

    target: LintTarget
    now: datetime
    trigger: Trigger
    """In its zone."""
    fires: Sequence[datetime]
    """The next ones."""
    nothing_left: bool = False
    """Exclusions leave nothing."""

    @property
    def base(self) -> Trigger:
        """Without exclusions."""
        return self.trigger.trigger if isinstance(self.trigger, Excluding) else self.trigger

    @property
    def cron(self) -> Cron | None:
        match self.base:
            case Cron() as cron:
                return cron
            case DailyAt(cron=cron) | Weekly(cron=cron) | Monthly(cron=cron):
                return cron
            case _:
                return None

    @property
    def every(self) -> Every | None:
        return self.base if isinstance(self.base, Every) else None

    @property
    def interval(self) -> float | None:
        """Seconds between the two of the next fires that are closest; None if it fires but once."""
        return min(self._gaps(), default=None)

    @property
    def mean_interval(self) -> float | None:
        gaps = self._gaps()
        return sum(gaps) / len(gaps) if gaps else None

    def _gaps(self) -> list[float]:
        if self.every and self.trigger is self.base:
            return [self.every.interval.total_seconds()]
        return [(later - earlier).total_seconds() for earlier, later in pairwise(self.fires)]


def _first_fires(trigger: Trigger, now: datetime) -> tuple[list[datetime], bool]:
    """By a clock that never changes, if it can be: a clock change is no change of pace."""
    match trigger:
        case Cron(expr=expr):
            trigger = Cron(expr)
        case DailyAt(cron=cron) | Weekly(cron=cron) | Monthly(cron=cron):
            trigger = Cron(cron.expr)
        case _:
            pass
    try:
        return trigger.upcoming(now, SAMPLE), False
    except ValueError:
        return [], True


def worded(seconds: float) -> str:
    """A time span in words."""
    return word_duration(timedelta(seconds=round(seconds, 3)))
