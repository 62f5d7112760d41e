"""Which workers are alive, whether one of them knows a task, and what to say where none does."""

import logging
from collections.abc import Iterable, Sequence

from rota.domain.run import Run, State
from rota.store import RunQuery, Store, WorkerSeen

log = logging.getLogger("rota")

SILENT = 30.0
"""Seconds after which a worker that said nothing is not counted on: its lease, if that is shorter, but not less than
BRIEF. A worker claims at least six times in that time."""
BRIEF = 2.0
PATIENCE = 3.0
"""Seconds for which somebody waits for a due run before a missing worker is worth a word."""
LOOK_AGAIN = 10.0
"""Seconds between two looks at the workers of one task."""
PAGE = 1000
"""Running runs that are read at once."""
SHOWN = 100
"""Characters of an id that are shown: it may come from outside."""


def is_alive(worker: WorkerSeen, now: float) -> bool:
    """Was it heard of lately? One that stopped has said goodbye, and knows no task any more."""
    return bool(worker.tasks) and now - worker.seen_at <= _patience(worker)


def is_blocked(worker: WorkerSeen, run: Run, now: float) -> bool:
    """Has it been silent, while the lease of a run that it holds was renewed? Then its event loop does not get on. A
    lease that was renewed soon after the last claim does not tell: its worker may have died since."""
    lease = worker.report.lease
    if not lease or run.worker != worker.name or run.until is None or run.until <= now:
        return False
    return run.until - lease - worker.seen_at > _patience(worker)


def _patience(worker: WorkerSeen) -> float:
    return min(SILENT, max(BRIEF, worker.report.lease or SILENT))


def nobody(task: str, workers: Iterable[WorkerSeen], now: float) -> str | None:
    """The sentence that no live worker knows the task, and what to do about that; None if one does."""
    seen = list(workers)
    alive = [worker for worker in seen if is_alive(worker, now)]
    if any(task in worker.tasks for worker in alive):
        return None
    knew = [worker.seen_at for worker in seen if task in worker.tasks]
    silent = f" (one that knows {task} fell silent {_ago(now - max(knew))})" if knew else ""
    if alive:
        return f"workers are alive, but none knows {task}: start one that imports its code{silent}"
    return f"no worker is alive: start one with `rota worker`{silent}"


async def all_running(store: Store) -> list[Run]:
    """Every run that a worker holds, page by page. A worker's report only tells what it held when it last spoke."""
    found: list[Run] = []
    cursor: str | None = None
    while True:
        page = await store.runs(RunQuery(states=[State.RUNNING], limit=PAGE, cursor=cursor))
        found += page.runs
        cursor = page.cursor
        if cursor is None:
            return found


def waits_for_a_worker(run: Run, now: float) -> bool:
    """Due, and nothing but a worker is wanted."""
    return run.state is State.QUEUED and run.due_at <= now and not run.needs and not run.parked


async def unfinished_words(store: Store, run: Run, now: float) -> str:
    """Where an unfinished run stands, since when, and whether a worker is there for it."""
    match run.state:
        case State.RUNNING:
            return f"it is running, for {max(0.0, now - (run.claimed_at or now)):.0f} s now, on worker {run.worker}"
        case State.PAUSED:
            return f"it is paused{f' ({run.note})' if run.note else ''}"
        case _ if run.needs:
            return f"it is queued and waits for {len(run.needs)} other {'run' if len(run.needs) == 1 else 'runs'}"
        case _ if run.due_at > now:
            return f"it is queued and due in {run.due_at - now:.0f} s"
        case _:
            workers = (await store.rows(WorkerSeen)).items
            missing = nobody(run.task, workers, now)
            there = "a live worker knows its task" if missing is None else missing
            return f"it is queued and was due {now - run.due_at:.0f} s ago; {there}"


class Attendance:
    """Says once per task that somebody waits for runs of it and no live worker knows it."""

    def __init__(self) -> None:
        self._looked: dict[str, float] = {}
        self._told: set[str] = set()

    async def look(self, store: Store, runs: Sequence[Run], now: float, clock: float) -> None:
        """`runs` are awaited for a while already; `clock` says when a task was looked at last."""
        wanted = {run.task: run for run in runs if waits_for_a_worker(run, now) and run.task not in self._told}
        fresh = [run for task, run in wanted.items() if clock - self._looked.get(task, -LOOK_AGAIN) >= LOOK_AGAIN]
        if not fresh:
            return
        seen = await store.rows(WorkerSeen)
        for run in fresh:
            self._looked[run.task] = clock
            missing = nobody(run.task, seen.items, seen.now)
            if missing is not None:
                self._told.add(run.task)
                log.warning("%s %s is awaited, but %s", run.task, run.id, missing)


async def late_words(store: Store, id: str, timeout: float) -> tuple[Run | None, str]:
    """The run if it has ended after all, and else why somebody who waited so long has no result."""
    page = await store.runs(RunQuery(ids=[id]))
    if not page.runs:
        return None, f"no result of run {id} within {timeout:g} s: {unknown_run(id)}"
    run = page.runs[0]
    if run.state.final:
        return run, ""
    words = await unfinished_words(store, run, page.now)
    return None, f"{run.task} {id} has not ended within {timeout:g} s: {words}"


def unknown_run(id: str) -> str:
    shown = id if id.isprintable() and len(id) <= SHOWN else repr(id[:SHOWN])
    return f"no run {shown}: it never was, or it ended so long ago that it is forgotten"


def _ago(seconds: float) -> str:
    for size, unit in ((86_400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
        if seconds >= 1.5 * size or size == 1.0:
            count = round(seconds / size)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    raise AssertionError("seconds are the last unit")
