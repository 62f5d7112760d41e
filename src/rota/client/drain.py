"""Drain: is all the work that is due done?"""

from collections.abc import Collection
from contextlib import aclosing

from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.engine.supervisor import Supervisor
from rota.store import Reads, RowQuery, RunQuery
from rota.store.paging import pages, row_pages

PAGE = 1000


async def drained(store: Reads, engine: Supervisor, tasks: Collection[str], everywhere: bool = False) -> bool:
    """Return whether nothing of `tasks` is due and nothing runs: in `engine`, or, with `everywhere`, in any engine.

    Runs that are due later do not count, nor do runs whose task is paused or disabled. Runs that wait for a limit or a
    rate count.
    """
    # Due, leased, due: a run that moves from one to the other between two reads is seen by one of the reads.
    if engine.running or await first_due(store, tasks, engine.queues):
        return False
    worker = None if everywhere else engine.name
    if await first_leased(store, tasks, worker) or await first_tick(store):
        return False
    return await first_due(store, tasks, engine.queues) is None


async def first_due(store: Reads, tasks: Collection[str], queues: Collection[str] = ()) -> Run | None:
    """Return a due run of `tasks` in `queues`, None if there is none. Without `queues`, a run in any queue."""

    def is_due(run: Run, now: float) -> bool:
        return run.due_at <= now and not run.needs and (not queues or run.queue in queues)

    off = {spec.name for spec in (await store.rows(TaskSpec)).items if spec.starts_nothing}
    waiting = [d.task for d in (await store.depths()).items if d.queued and d.task in tasks and d.task not in off]
    for task in waiting:
        async with aclosing(pages(store, RunQuery(state=[State.QUEUED], task=task, limit=PAGE))) as found:
            async for page in found:
                if due := next((run for run in page.runs if is_due(run, page.now)), None):
                    return due
    return None


async def first_tick(store: Reads) -> Schedule | None:
    """Return a schedule that should have fired and has not, None if there is none."""
    async with aclosing(row_pages(store, Schedule, RowQuery(limit=PAGE))) as found:
        async for page in found:
            for schedule in page.items:
                if schedule.fires_at is not None and schedule.fires_at <= page.now and not schedule.paused:
                    return schedule
    return None


async def first_leased(store: Reads, tasks: Collection[str], worker: str | None = None) -> Run | None:
    """Return a run that `worker` holds according to the store, or a run of `tasks` whose lease has lapsed. Without
    `worker`, return any running run of `tasks`."""
    page = await store.runs(RunQuery(state=[State.RUNNING], limit=PAGE))
    for run in page.runs:
        lapsed = run.until is not None and run.until <= page.now
        if run.worker == worker or (run.task in tasks and (lapsed or worker is None)):
            return run
    return None
