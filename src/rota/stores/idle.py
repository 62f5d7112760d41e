"""Which idle workers get a hint: one worker per run that became claimable."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from rota.domain.run import DEFAULT_QUEUE
from rota.store import IDLE_MEMORY


class Arrival(Struct, frozen=True, gc=False):
    """A run that became claimable: its task, its due time and its queue. The task is None for a schedule.

    The queue is None if a run of any queue may start, because a limit of the task has room again.
    """

    task: str | None
    due_at: float
    queue: str | None = DEFAULT_QUEUE


def arrival_of(name: str, due_at: float = 0.0) -> Arrival:
    """Return the arrival that PostgreSQL names by its lane: see lane_name in functions/hints.sql."""
    task, _, queue = name.partition("\x1f")
    return Arrival(task, due_at, None if queue == "*" else queue or DEFAULT_QUEUE)


class Idle(Struct, frozen=True):
    """A worker whose last claim left seats empty. It claims again at `wake_at` by itself, if `wake_at` is set."""

    worker: str
    tasks: frozenset[str]
    seen_at: float
    wake_at: float | None = None
    queues: frozenset[str] = frozenset()
    """Empty: the worker serves all queues."""

    def takes(self, arrival: Arrival) -> bool:
        served = arrival.queue is None or not self.queues or arrival.queue in self.queues
        return served and arrival.task in self.tasks


def to_hint(idle: Iterable[Idle], arrivals: Iterable[Arrival], now: float) -> dict[str, Arrival]:
    """Choose one idle worker for each arrival, among those that do not wake by themselves in time. The worker with the
    latest `wake_at` is chosen first. For an arrival in any queue, one of the workers that serve the same queues is
    chosen.

    Every worker can fire a schedule: one hinted worker, or one that wakes in time, is enough for all schedules.
    """
    asleep = sorted((worker for worker in idle if worker.seen_at > now - IDLE_MEMORY), key=_wakes, reverse=True)
    hinted: dict[str, Arrival] = {}
    ticks: list[float] = []
    for arrival in arrivals:
        if not asleep:
            break
        if arrival.task is None:
            ticks.append(arrival.due_at)
            continue
        chosen: dict[frozenset[str], Idle] = {}
        for worker in asleep:
            if worker.takes(arrival) and _wakes(worker) > arrival.due_at:
                chosen.setdefault(worker.queues, worker)
                if arrival.queue is not None:
                    break
        for worker in chosen.values():
            asleep.remove(worker)
            hinted[worker.worker] = arrival
    if ticks and asleep and not hinted and _wakes(asleep[-1]) > min(ticks):
        hinted[asleep[0].worker] = Arrival(None, min(ticks))
    return hinted


def others_wake(
    idle: Iterable[Idle], worker: str, tasks: frozenset[str], queues: frozenset[str], now: float
) -> list[float]:
    """Return when the idle workers other than `worker` will claim runs of `tasks` in `queues`."""
    return [
        other.wake_at
        for other in idle
        if other.worker != worker
        and other.seen_at > now - IDLE_MEMORY
        and other.wake_at is not None
        and other.wake_at > now
        and not tasks.isdisjoint(other.tasks)
        and not (queues and other.queues and queues.isdisjoint(other.queues))
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
