"""Workers: who is there to do the work, and in what state."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from rota.client.fleet import LEASE_TASK, all_running, is_alive, stopping
from rota.client.operations import OPERATION
from rota.store import Reads, WorkerSeen
from rota.views.values import iso


class StallView(Struct, frozen=True):
    """`what`: `call` or `loop`. `over_for`: seconds since it ended; null while it lasts. `stack`: the innermost frames,
    null for callers without the right to read tracebacks."""

    what: str
    seconds: float
    task: str | None
    run: str | None
    over_for: float | None
    stack: str | None


class WorkerView(Struct, frozen=True):
    """`held` counts the runs that the worker has claimed; `overdue` counts calls that outlived
    their runs and still take a seat."""

    name: str
    standing: str
    host: str
    pid: int
    seats: int
    held: int
    overdue: int
    idle: bool
    tasks: Sequence[str]
    queues: Sequence[str]
    """Empty: the worker serves all queues."""
    seen_at: str
    silent_for: float
    version: str
    quiet: bool
    """A person has asked the worker to start no more runs."""
    began_at: str | None
    ahead: float
    """Seconds by which the clock of its host is ahead of the store's; 0 if they agree."""
    stalls: Sequence[StallView] = ()
    """Calls that do not end, and the last blockage of its event loop."""


async def worker_views(store: Reads) -> list[WorkerView]:
    """Return the workers that `store` has seen in the last hour, the last seen first."""
    seen, running = await store.rows(WorkerSeen), await all_running(store)
    claimed = Counter(run.worker for run in running)
    leaving = {worker.name for worker in stopping(seen.items, running, seen.now)}
    return [
        _view(worker, worker.name in leaving, claimed[worker.name], seen.now)
        for worker in sorted(seen.items, key=lambda worker: (-worker.seen_at, worker.name))
        if not worker.name.startswith(LEASE_TASK)  # a caller of app.lease is no worker
    ]


def _view(worker: WorkerSeen, leaving: bool, claimed: int, now: float) -> WorkerView:
    report = worker.report
    return WorkerView(
        name=worker.name,
        standing=_state(worker, leaving, claimed, now),
        host=report.host,
        pid=report.pid,
        seats=report.seats,
        held=claimed,
        overdue=report.overdue,
        idle=worker.idle,
        tasks=[task for task in worker.tasks if task != OPERATION],
        queues=worker.queues,
        seen_at=iso(worker.seen_at),
        silent_for=round(max(0.0, now - worker.seen_at), 3),
        version=report.version,
        quiet=worker.orders.quiet,
        began_at=iso(report.began) if report.began else None,
        ahead=report.ahead,
        stalls=tuple(
            StallView(each.what, each.seconds, each.task or None, each.run or None, each.over_for, each.stack)
            for each in report.stalls
        ),
    )


def _state(worker: WorkerSeen, leaving: bool, claimed: int, now: float) -> str:
    """A worker that is killed while it stops is silent: its runs wait until their leases lapse."""
    if leaving or (worker.orders.stop and is_alive(worker, now)):
        return "stopping"
    if not worker.tasks and not claimed:
        return "stopped"
    if not is_alive(worker, now):
        return "silent"
    if worker.orders.quiet:
        return "quiet"
    return "busy" if claimed else "idle"
