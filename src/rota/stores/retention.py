"""How long stores remember what is no run."""

from rota.domain.schedule import Schedule

WORKER_MEMORY = 3600.0
MARK_MEMORY = 8 * 86_400.0
"""Also for decisions, and for schedules that have no tick left and are in nobody's code."""


def over(schedule: Schedule, before: float) -> bool:
    """Has it had its last tick before then, and does no code declare it?"""
    if schedule.owner or schedule.next_at is not None:
        return False
    last = schedule.recent[-1].nominal if schedule.recent else schedule.since
    return max(last, schedule.since) <= before
