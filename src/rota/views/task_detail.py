"""Tasks as they are now: what waits for longest, and who could start it."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rota.domain.run import Run, State
from rota.domain.spec import TaskSpec
from rota.errors import InvalidOptions
from rota.store import Reads, RunQuery, WorkerSeen

FIRST_DUE = 100
"""So many queued runs, the first due first, are looked at for the oldest one of each task."""


async def first_due(store: Reads, task: str | None = None) -> Sequence[Run] | None:
    """Return the queued runs that are due first, of one task or of all; None if so many runs are held that the store
    does not sort them."""
    try:
        return (await store.runs(RunQuery(task=task, state=[State.QUEUED], order="due", limit=FIRST_DUE))).runs
    except InvalidOptions:
        return None


def oldest_due(runs: Iterable[Run], specs: Iterable[TaskSpec], now: float) -> dict[str, float]:
    """Return since when a run of each task could have started. Nothing of a task that is paused or disabled could."""
    off = {spec.name for spec in specs if spec.starts_nothing}
    found: dict[str, float] = {}
    for run in runs:
        if run.due_at <= now and not run.needs and run.task not in off:
            found[run.task] = min(found.get(run.task, run.due_at), run.due_at)
    return found


def knowing(alive: Iterable[WorkerSeen]) -> Counter[str]:
    """Return how many of these workers know each task."""
    return Counter(task for worker in alive for task in set(worker.tasks))
