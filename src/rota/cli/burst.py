"""`rota worker --burst`: when is the work that is due all done?"""

from collections.abc import Collection

from rota.app import Rota
from rota.cli.signals import Stop
from rota.domain.run import State
from rota.domain.spec import TaskSpec
from rota.store import RunQuery, Store

LOOK_AGAIN = 0.2
PAGE = 1000


async def until_drained(app: Rota, tasks: Collection[str], stop: Stop) -> None:
    """Until nothing of these tasks is due and nothing runs here, or until told to stop.

    What is due later does not count, nor what a paused task holds back. A run that a limit or rate makes wait does.
    """
    client, engine = app.client(), app.engine
    store = await client.store()
    heard = await client.news(0)
    while not stop.asked.is_set():
        # Due, held, due: a run that goes from one to the other between two reads is seen by one of them.
        busy = engine.running or await _due(store, tasks) or await _held(store, engine.name, tasks)
        if not busy and not await _due(store, tasks):
            return
        heard = await client.news(LOOK_AGAIN, heard)


async def _due(store: Store, tasks: Collection[str]) -> bool:
    """Is any run of these tasks due?"""
    paused = {spec.name for spec in (await store.rows(TaskSpec)).items if spec.paused}
    waiting = [d.task for d in (await store.depths()).items if d.queued and d.task in tasks and d.task not in paused]
    for task in waiting:
        cursor: str | None = None
        while True:
            page = await store.runs(RunQuery(states=[State.QUEUED], task=task, limit=PAGE, cursor=cursor))
            if any(run.due_at <= page.now for run in page.runs):
                return True
            cursor = page.cursor
            if cursor is None:
                break
    return False


async def _held(store: Store, worker: str, tasks: Collection[str]) -> bool:
    """Has this worker runs in hand by the store's account, or has a dead one left some behind?"""
    page = await store.runs(RunQuery(states=[State.RUNNING], limit=PAGE))
    return any(
        run.worker == worker or (run.task in tasks and run.until is not None and run.until <= page.now)
        for run in page.runs
    )
