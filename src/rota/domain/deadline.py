"""Deadlines: when something should be done. A deadline is a schedule whose ticks make no run: they look for one."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from rota.domain.once import named
from rota.domain.period import Period
from rota.domain.triggers import DailyAt, Trigger

CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


class Deadline(Struct, frozen=True, omit_defaults=True):
    """What its ticks look for: a success of the schedule's task in the period that the tick lies in, or (without one)
    since the tick before. `about` is the key, but for the period; None for any."""

    about: str | None = None
    period: Period | None = None
    tz: str = "UTC"
    """The zone in which people are told of it."""

    def key(self, nominal: float) -> str | None:
        """The key of the mark that must be there; None if any of the task's will do."""
        if self.period is None:
            return self.about
        return named(self.about, self.period.name(datetime.fromtimestamp(nominal, UTC)))

    def words(self, nominal: float) -> str:
        return f"not done by {datetime.fromtimestamp(nominal, ZoneInfo(self.tz)):%Y-%m-%d %H:%M} {self.tz}"


def deadline_id(of: str) -> str:
    return f"expect:{of}"


def deadline_trigger(expect: object, period: Period | None = None) -> Trigger:
    """`expect="07:00"` is every day at that time; a trigger says otherwise."""
    if isinstance(expect, Trigger):
        return expect
    if not isinstance(expect, str):
        raise TypeError(f"expect={expect!r}: a time of day such as '07:00', or a trigger such as Weekly('mon', 9)")
    clock = CLOCK.fullmatch(expect.strip())
    if clock is None:
        return Trigger.parse(expect)
    if period is not None and period.unit != "day":
        raise ValueError(f"expect={expect!r} is a time of every day; by when in the {period.unit}? Give a trigger")
    return DailyAt(int(clock[1]), int(clock[2]))
