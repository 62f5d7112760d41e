"""Drained: is the work that is due all done?"""

from collections.abc import Collection

from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.engine.supervisor import Supervisor
from rota.store import RowQuery, RunQuery, Store

PAGE = 1000


async def drained(store: Store, engine: Supervisor, tasks: Collection[str], everywhere: bool = False) -> bool:
    """Nothing of these tasks is due and nothing runs: in this engine, or, if asked, anywhere.

    What is due later does not count, nor what waits because its task is paused or disabled. A run that a limit or rate
    makes wait does.
    """
    # Due, held, due: a run that goes from one to the other between two reads is seen by one of them.
    if engine.running or await first_due(store, tasks):
        return False
    worker = None if everywhere else engine.name
    if await first_leased(store, tasks, worker) or await first_tick(store):
        return False
    return await first_due(store, tasks) is None


async def first_due(store: Store, tasks: Collection[str]) -> Run | None:
    """A run of these tasks that is due."""
    held = {spec.name for spec in (await store.rows(TaskSpec)).items if spec.starts_nothing}
    waiting = [d.task for d in (await store.depths()).items if d.queued and d.task in tasks and d.task not in held]
    for task in waiting:
        cursor: str | None = None
        while True:
            page = await store.runs(RunQuery(states=[State.QUEUED], task=task, limit=PAGE, cursor=cursor))
            if due := next((run for run in page.runs if run.due_at <= page.now and not run.needs), None):
                return due
            cursor = page.cursor
            if cursor is None:
                break
    return None


async def first_tick(store: Store) -> Schedule | None:
    """A schedule that has not fired yet and should have."""
    after = ""
    while True:
        page = await store.rows(Schedule, RowQuery(after=after, limit=PAGE))
        for schedule in page.items:
            if schedule.fires_at is not None and schedule.fires_at <= page.now and not schedule.paused:
                return schedule
        if not page.items:
            return None
        after = page.items[-1].id


async def first_leased(store: Store, tasks: Collection[str], worker: str | None = None) -> Run | None:
    """A run that this worker (or, without one, any) has in hand by the store's account, or that a dead one left."""
    page = await store.runs(RunQuery(states=[State.RUNNING], limit=PAGE))
    for run in page.runs:
        lapsed = run.until is not None and run.until <= page.now
        if run.worker == worker or (run.task in tasks and (lapsed or worker is None)):
            return run
    return None
