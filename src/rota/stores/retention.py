"""How long stores keep workers, marks, decisions and schedules."""

import math

from rota.domain.activity import touch_guards
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec

WORKER_MEMORY = 3600.0
MARK_MEMORY = 8 * 86_400.0
"""Seconds; also for decisions, and for schedules that have no tick left and that no code declares."""


def mark_memory(spec: TaskSpec) -> float:
    """Return for how many seconds the marks of a task are kept: as long as a guard of the task may read them."""
    guards = spec.guards if spec.activity is None else touch_guards(spec.activity, spec.guards)
    own = spec.guards
    if own.unique == "done" and (own.within is None or own.sliding):
        return math.inf
    return max([MARK_MEMORY + spec.memory, own.within or 0.0, *(rule.seconds for rule in guards.cooldowns)])


def over(schedule: Schedule, before: float) -> bool:
    """Return whether `schedule` had its last tick before `before` and no code declares it."""
    if schedule.owner or schedule.next_at is not None:
        return False
    last = schedule.recent[-1].nominal if schedule.recent else schedule.since
    return max(last, schedule.since) <= before
