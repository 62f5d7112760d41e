"""How long stores remember what is no run."""

import math

from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec

WORKER_MEMORY = 3600.0
MARK_MEMORY = 8 * 86_400.0
"""Also for decisions, and for schedules that have no tick left and are in nobody's code."""


def mark_memory(spec: TaskSpec) -> float:
    """Seconds for which the marks of a task are kept: as long as one of its policies may read them."""
    guards = spec.guards if spec.activity is None else spec.activity.guards(spec.guards)
    if guards.unique == "done" or spec.guards.unique == "done":
        return math.inf
    return max([MARK_MEMORY + spec.memory, *(rule.seconds for rule in guards.cooldowns)])


def over(schedule: Schedule, before: float) -> bool:
    """Has it had its last tick before then, and does no code declare it?"""
    if schedule.owner or schedule.next_at is not None:
        return False
    last = schedule.recent[-1].nominal if schedule.recent else schedule.since
    return max(last, schedule.since) <= before
