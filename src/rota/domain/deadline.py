"""Deadlines: by when a task should have succeeded. A deadline is a schedule whose ticks make no run; they look for a
success."""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from msgspec import Struct

from rota.domain.once import named
from rota.domain.period import Period
from rota.domain.triggers import AtStart, DailyAt, Trigger

CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


class Deadline(Struct, frozen=True, omit_defaults=True):
    """What the ticks of a deadline look for: a success of the task in the period of the tick, or, without a period,
    since the tick before. `about` is the key without the period; None for any key."""

    about: str | None = None
    period: Period | None = None
    tz: str = "UTC"
    """The zone of the times in messages."""

    def key(self, nominal: float) -> str | None:
        """Return the key of the mark that the tick looks for; None if any mark of the task is enough."""
        if self.period is None:
            return self.about
        return named(self.about, self.period.name(datetime.fromtimestamp(nominal, UTC)))

    def words(self, nominal: float) -> str:
        return f"not done by {datetime.fromtimestamp(nominal, ZoneInfo(self.tz)):%Y-%m-%d %H:%M} {self.tz}"


def deadline_id(of: str) -> str:
    return f"expect:{of}"


def deadline_trigger(expect: object, period: Period | None = None) -> Trigger:
    """Return the trigger of `expect`: a time such as "07:00" is every day at that time; else a trigger or its text."""
    if isinstance(expect, AtStart):
        raise ValueError("expect=AtStart() names no time; give a time of day such as '07:00', or another trigger")
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
