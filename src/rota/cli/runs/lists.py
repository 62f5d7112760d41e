"""Lists of runs that no single query of a store gives: since an instant, of a schedule, or in the order of claims."""

import heapq
from collections.abc import AsyncIterator

from msgspec.structs import replace

from rota.domain.run import Run, State
from rota.domain.spec import TaskSpec
from rota.store import Page, RunQuery, Store

PAGE = 500
SCHEDULED = ("schedule", "run_now")


async def matching(store: Store, query: RunQuery, schedule: str | None, since: float | None) -> tuple[Page, bool]:
    """The newest runs of the query that also fit these, and whether there are more of them."""
    found: list[Run] = []
    now = (await store.depths()).now
    async for run, now in _each(store, query):
        if since is not None and run.created_at < since:
            break  # newest first: all that follow are older
        if schedule is None or (run.origin.kind in SCHEDULED and run.origin.of == schedule):
            if len(found) == query.limit:
                return Page(now, found, None), True
            found.append(run)
    return Page(now, found, None), False


async def next_runs(store: Store, task: str | None, count: int) -> Page:
    """The runs that workers claim next, in their order: due ones by priority and then by how long they are due, then
    those that fall due first. Paused and disabled tasks are left out, and runs that wait for others or for a limit.
    """
    specs = (await store.rows(TaskSpec)).items
    off = {spec.name for spec in specs if spec.paused or not spec.enabled}
    waiting: list[tuple[tuple[float, ...], int, Run]] = []
    now = (await store.depths()).now
    arrived = 0
    async for run, seen in _each(store, RunQuery(states=[State.QUEUED], task=task)):
        now, arrived = seen, arrived - 1  # newest first, so later ones have arrived before
        if run.task not in off and not run.parked and not run.needs:
            waiting.append((_turn(run, now), arrived, run))
            if len(waiting) > 2 * (count + PAGE):
                waiting = heapq.nsmallest(count, waiting, key=_order)
    return Page(now, [run for *_, run in heapq.nsmallest(count, waiting, key=_order)], None)


def _turn(run: Run, now: float) -> tuple[float, ...]:
    return (0.0, -run.priority, run.due_at) if run.due_at <= now else (1.0, run.due_at, -run.priority)


def _order(entry: tuple[tuple[float, ...], int, Run]) -> tuple[tuple[float, ...], int]:
    return entry[:2]


async def _each(store: Store, query: RunQuery) -> AsyncIterator[tuple[Run, float]]:
    page = await store.runs(replace(query, limit=PAGE))
    while True:
        for run in page.runs:
            yield run, page.now
        if page.cursor is None:
            return
        page = await store.runs(replace(query, limit=PAGE, cursor=page.cursor))
