"""One task with what happens to it now: what waits for longest, who could start it, which limits are taken."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from rota.client.client import Client
from rota.client.fleet import Fleet
from rota.domain.gates import RateState
from rota.domain.policy import Rate
from rota.domain.spec import TaskSpec
from rota.store import Depth, DueCount, RateRow, RowQuery, WorkerSeen
from rota.views.stats import StatView, read_stats, stat_views
from rota.views.tasks import TaskView
from rota.views.values import iso
from rota.why.evidence import shared_limits


class LimitUse(Struct, frozen=True):
    """How many runs count under a limit now. `name` is None for the task's own limit; under a named limit, the runs of
    all tasks that have it count."""

    name: str | None
    total: int
    used: int


class RateLeft(Struct, frozen=True):
    """How many runs the task's rate lets start now, and from when on it lets the next one start."""

    left: int
    opens_at: str


class LastHour(Struct, frozen=True):
    """What workers counted in the last hour: runs that `ended` (succeeded, failed or were cancelled), and the seconds
    within which 95 % of the runs started once they were due, and of the calls were over; None if there were none."""

    ended: int = 0
    failed: int = 0
    wait_p95: float | None = None
    run_p95: float | None = None


class TaskDetail(TaskView, frozen=True, kw_only=True):
    """A task, and what happens to it now. `oldest_due_at`: since when a run could have started; None if none could.
    `workers`: those that are alive and know the task.
    `limits_used`: of the limits in force that have a total. `rate_left`: None without a rate, or if each key has its
    own."""

    oldest_due_at: str | None
    workers: int
    limits_used: tuple[LimitUse, ...]
    rate_left: RateLeft | None
    last_hour: LastHour


def oldest_due(due: Iterable[DueCount], specs: Iterable[TaskSpec]) -> dict[str, float]:
    """Return since when a run of each task could have started. Nothing of a task that is paused or disabled could."""
    off = {spec.name for spec in specs if spec.starts_nothing}
    found: dict[str, float] = {}
    for one in due:
        if one.task not in off:
            found[one.task] = min(found.get(one.task, one.since), one.since)
    return found


def knowing(alive: Iterable[WorkerSeen]) -> Counter[str]:
    """Return how many of these workers know each task."""
    return Counter(task for worker in alive for task in set(worker.tasks))


async def task_detail(client: Client, view: TaskView, spec: TaskSpec, depths: Sequence[Depth]) -> TaskDetail:
    """`spec` is what is in force for the task of `view`; `depths` are those of all tasks."""
    due, workers, stats, rates, shared = await asyncio.gather(
        client.rows(DueCount, RowQuery(task=view.task)),
        client.rows(WorkerSeen),
        read_stats(client, 60, "all"),
        client.rows(RateRow, RowQuery(task=view.task, key="")),
        shared_limits(client, spec, depths),
    )
    own = spec.in_force().limit
    uses = [LimitUse(each.name, each.total, sum(each.running.values())) for each in shared]
    if own is not None and own.total is not None:
        uses.insert(0, LimitUse(None, own.total, view.running))
    counted = stat_views((stat for stat in stats.items if stat.tally.task == view.task), whole=True)
    return TaskDetail(
        **asdict(view),
        oldest_due_at=iso(oldest_due(due.items, [spec]).get(view.task)),
        workers=knowing(Fleet(workers.now, workers.items).alive)[view.task],
        limits_used=tuple(uses),
        rate_left=_rate_left(spec.in_force().rate, rates.items, stats.now),
        last_hour=_last_hour(counted[0]) if counted else LastHour(),
    )


def _rate_left(rate: Rate | None, rows: Sequence[RateRow], now: float) -> RateLeft | None:
    if rate is None or rate.per_key:
        return None
    state = RateState(rows[0].full_at if rows else 0.0)
    return RateLeft(state.tokens(rate, now), iso(max(now, state.opens_at(rate))))


def _last_hour(counted: StatView) -> LastHour:
    ended = counted.succeeded + counted.failed + counted.cancelled
    return LastHour(ended, counted.failed, counted.wait_p95, counted.run_p95)
