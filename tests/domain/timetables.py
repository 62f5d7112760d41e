"""Schedules for the tests of their rules: declared at an instant, fired as a store fires them."""

from datetime import UTC, datetime
from typing import Any

from rota.domain import codec
from rota.domain.decision import Decision, Reason
from rota.domain.policy import Policy
from rota.domain.run import Origin
from rota.domain.schedule import Schedule, Tick, advanced, declared
from rota.domain.ticks import due_tick, with_first_tick

BODY = codec.encode(b'{"name":"Ada"}', Origin(), Policy()).decode()
DAY = 86_400.0


def instant(*parts: int) -> float:
    return datetime(*parts, tzinfo=UTC).timestamp()  # type: ignore[arg-type,misc]  # year, month, day, hour …


NOON = instant(2026, 11, 15, 12)


def new(trigger: str, **fields: Any) -> Schedule:
    return Schedule(id="report", trigger=trigger, task="greet", body=BODY, key="schedule:report", **fields)


def known(trigger: str, now: float = NOON, **fields: Any) -> Schedule:
    """As a store knows it after its first declaration."""
    return declared(with_first_tick(new(trigger, **fields), now), None, now)


def fired(schedule: Schedule, now: float) -> tuple[Tick, Schedule]:
    """Its step now, and the schedule after it."""
    tick = due_tick(schedule, now)
    return tick, advanced(schedule, tick, [Decision(run.id, Reason.ACCEPTED) for run in tick.runs])
