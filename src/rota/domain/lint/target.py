"""What lint checks: the known options of a schedule, and its next fires."""

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
"""Number of fires from which the interval is computed."""


class LintTarget(Struct, frozen=True, kw_only=True):
    """A schedule to check. None is an unknown value or a default. Times are seconds."""

    trigger: Trigger
    zone: str | None = None
    """The zone of the app, for a trigger without a zone."""
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None
    grace: float | None = None
    duration: float | None = None
    """Usual seconds of a run."""
    timeout: float | None = None
    retry: Retry = Retry()

    def seen(self, now: datetime) -> "View":
        now = as_utc(now)
        trigger = self.trigger if self.zone is None else self.trigger.in_zone(self.zone)
        return View(self, now, trigger, *_first_fires(trigger.anchored(now), now))


class View(Struct, frozen=True):
    """A schedule at an instant, with values that several rules need."""

    target: LintTarget
    now: datetime
    trigger: Trigger
    """The trigger with its zone."""
    fires: Sequence[datetime]
    """The next fires."""
    nothing_left: bool = False
    """The exclusions exclude all fires."""

    @property
    def base(self) -> Trigger:
        """The trigger without exclusions."""
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
        """An interval that counts seconds, not days."""
        return self.base if isinstance(self.base, Every) and self.base.at is None else None

    @property
    def interval(self) -> float | None:
        """The shortest time between two of the next fires, in seconds; None if there is only one fire."""
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
    """Return the next fires, and whether the exclusions exclude all of them.

    Cron triggers are read in UTC: a clock change is no change of the interval.
    """
    match trigger:
        case Cron(expr=expr, week=week, year=year):
            trigger = Cron(expr, week=week, year=year)
        case DailyAt(cron=cron) | Weekly(cron=cron) | Monthly(cron=cron):
            trigger = Cron(cron.expr)
        case _:
            pass
    try:
        return trigger.upcoming(now, SAMPLE), False
    except ValueError:
        return [], True


def worded(seconds: float) -> str:
    """Return a time span in words."""
    return word_duration(timedelta(seconds=round(seconds, 3)))
