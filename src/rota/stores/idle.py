"""Whom to wake: as many idle workers as there is work for, never all of them."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from rota.store import IDLE_MEMORY

Arrival = tuple[str | None, float]
"""The task and due time of a run that can be taken; a schedule comes without a task."""


class Idle(Struct, frozen=True):
    """A worker that found nothing. It looks again by itself at `wake_at`, if it was given one."""

    worker: str
    tasks: frozenset[str]
    seen_at: float
    wake_at: float | None = None


def to_hint(idle: Iterable[Idle], arrivals: Iterable[Arrival], now: float) -> dict[str, Arrival]:
    """One idle worker for each arrival, unless it wakes in time by itself; the last to wake first.

    Anyone can fire a schedule, and one who wakes in time is enough.
    """
    asleep = sorted((worker for worker in idle if worker.seen_at > now - IDLE_MEMORY), key=_wakes, reverse=True)
    hinted: dict[str, Arrival] = {}
    ticks: list[float] = []
    for task, due_at in arrivals:
        if not asleep:
            break
        if task is None:
            ticks.append(due_at)
            continue
        for worker in asleep:
            if task in worker.tasks and _wakes(worker) > due_at:
                asleep.remove(worker)
                hinted[worker.worker] = task, due_at
                break
    if ticks and asleep and not hinted and _wakes(asleep[-1]) > min(ticks):
        hinted[asleep[0].worker] = None, min(ticks)
    return hinted


def waiting(idle: Iterable[Idle], worker: str, tasks: frozenset[str], now: float) -> list[float]:
    """When other workers will look for runs of these tasks."""
    return [
        other.wake_at
        for other in idle
        if other.worker != worker
        and other.seen_at > now - IDLE_MEMORY
        and other.wake_at is not None
        and other.wake_at > now
        and not tasks.isdisjoint(other.tasks)
    ]


def wake_for(others: Sequence[float], upcoming: Iterable[float]) -> float | None:
    """The first upcoming due time for which too few others wake: so the k-th worker wakes for the k-th run.

    Not simply the (number of others + 1)-th: workers that look again would all move to the last one.
    """
    for place, due_at in enumerate(upcoming):
        if sum(wake_at <= due_at for wake_at in others) <= place:
            return due_at
    return None


def _wakes(worker: Idle) -> float:
    return math.inf if worker.wake_at is None else worker.wake_at
