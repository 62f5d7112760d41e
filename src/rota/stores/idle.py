"""Which idle workers get a hint: one worker per run that became claimable."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from rota.store import IDLE_MEMORY

Arrival = tuple[str | None, float]
"""The task and due time of a run that became claimable. The task is None for a schedule."""


class Idle(Struct, frozen=True):
    """A worker whose last claim left seats empty. It claims again at `wake_at` by itself, if `wake_at` is set."""

    worker: str
    tasks: frozenset[str]
    seen_at: float
    wake_at: float | None = None


def to_hint(idle: Iterable[Idle], arrivals: Iterable[Arrival], now: float) -> dict[str, Arrival]:
    """Choose one idle worker for each arrival, among those that do not wake by themselves in time. The worker with the
    latest `wake_at` is chosen first.

    Every worker can fire a schedule: one hinted worker, or one that wakes in time, is enough for all schedules.
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


def others_wake(idle: Iterable[Idle], worker: str, tasks: frozenset[str], now: float) -> list[float]:
    """Return when the idle workers other than `worker` will claim runs of `tasks`."""
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
    """Return the first due time in `upcoming` for which too few of the `others` wake: the k-th worker wakes for the
    k-th run.

    The due time at place len(others) would be wrong: every worker that claims again would move to the last due time.
    """
    for place, due_at in enumerate(upcoming):
        if sum(wake_at <= due_at for wake_at in others) <= place:
            return due_at
    return None


def _wakes(worker: Idle) -> float:
    return math.inf if worker.wake_at is None else worker.wake_at
