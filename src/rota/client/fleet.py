"""Fleet: which workers are alive, whether one of them knows a task, and the words for a missing worker."""

import logging
from collections.abc import Iterable, Sequence

from msgspec import Struct

from rota.domain.lifecycle import Lost, settlement_of
from rota.domain.run import DEFAULT_QUEUE, Run, State
from rota.domain.settlement import Finish
from rota.store import Reads, RunQuery, WorkerSeen
from rota.store.paging import all_runs

log = logging.getLogger("rota")

SILENT = 30.0
"""Seconds after the last claim of a worker until the worker counts as dead. The worker's lease counts instead if it is
shorter, but never less than BRIEF. A worker claims at least six times in that time."""
BRIEF = 2.0
PATIENCE = 3.0
"""Seconds for which somebody waits for a due run before a missing worker is reported."""
LOOK_AGAIN = 10.0
"""Seconds between two reads of the workers for one task."""
NAMED = 3
LEASE_TASK = "rota.lease:"
SESSION_TASK = "rota.session:"
UNDO_TASK = "rota.undo:"
OPERATION_TASK = "rota.operation"
INNER_TASKS = (LEASE_TASK, SESSION_TASK, UNDO_TASK)
"""How tasks begin whose runs no worker starts: the leases of `app.lease`, sessions of browsers, records of undo."""
PAGE = 1000
"""Running runs in one page."""
SHOWN = 100
"""Characters of an id that an error shows: the id may come from outside."""


def is_inner(task: str) -> bool:
    """Is `task` one of rota's own, whose runs no worker starts? Lists for people leave them out."""
    return task.startswith(INNER_TASKS)


def is_alive(worker: WorkerSeen, now: float) -> bool:
    """Has `worker` claimed lately? A worker that stops publishes an empty list of tasks."""
    return bool(worker.tasks) and now - worker.seen_at <= _patience(worker)


def is_blocked(worker: WorkerSeen, run: Run, now: float) -> bool:
    """Does `worker` renew the lease of `run` although it has not claimed for long? Then its event loop is blocked.

    A renewal soon after the last claim proves nothing: the worker may have died since. A worker that is stopping also
    renews without claiming.
    """
    lease = worker.report.lease
    if not lease or not worker.tasks or run.worker != worker.name or run.until is None or run.until <= now:
        return False
    return run.until - lease - worker.seen_at > _patience(worker)


def _patience(worker: WorkerSeen) -> float:
    return min(SILENT, max(BRIEF, worker.report.lease or SILENT))


class Fleet(Struct, frozen=True):
    """The workers as the store knows them at its time `now`.

    `stopping` are workers that claim no more and still hold runs; `see` reads them only if no worker is alive.
    """

    now: float
    workers: Sequence[WorkerSeen]
    stopping: Sequence[WorkerSeen] = ()

    @property
    def alive(self) -> list[WorkerSeen]:
        return [worker for worker in self.workers if is_alive(worker, self.now)]


async def see(store: Reads) -> Fleet:
    """Read the workers, as far as `nobody` and `stranded_words` need them."""
    seen = await store.rows(WorkerSeen)
    fleet = Fleet(seen.now, seen.items)
    if fleet.alive or all(worker.tasks for worker in seen.items):
        return fleet
    return Fleet(seen.now, seen.items, stopping(seen.items, await all_running(store), seen.now))


def stopping(workers: Iterable[WorkerSeen], running: Iterable[Run], now: float) -> list[WorkerSeen]:
    """Return the workers that claim no more and still renew the leases of runs."""
    leasing = {run.worker for run in running if not is_stranded(run, now)}
    return [w for w in workers if not w.tasks and w.name in leasing and not w.name.startswith(LEASE_TASK)]


def nobody(task: str, fleet: Fleet, queue: str = DEFAULT_QUEUE) -> str | None:
    """Return the sentence that no live worker takes runs of `task` in `queue`, with what to do about it; None if a live
    worker does."""
    alive = fleet.alive
    if any(worker.takes(task, queue) for worker in alive):
        return None
    if any(task in worker.tasks for worker in alive):
        return f"no live worker serves queue {queue}: start one with `rota worker --queues {queue}`"
    knew = [worker.seen_at for worker in fleet.workers if task in worker.tasks]
    silent = f" (one that knows {task} fell silent {_ago(fleet.now - max(knew))})" if knew else ""
    if alive:
        return f"workers are alive, but none knows {task}: start one that imports its code{silent}"
    if fleet.stopping:
        names = " and ".join(worker.name for worker in fleet.stopping[:NAMED])
        verbs = "is stopping and claims" if len(fleet.stopping) == 1 else "are stopping and claim"
        return f"{names} {verbs} nothing more: start another worker with `rota worker`{silent}"
    return f"no worker is alive: start one with `rota worker`{silent}"


def is_stranded(run: Run, now: float) -> bool:
    """Has the lease of `run` lapsed without a rescue?"""
    return run.state is State.RUNNING and run.until is not None and run.until <= now


def stranded_words(run: Run, fleet: Fleet) -> str:
    """Return what becomes of a stranded run. Any live worker rescues it, whichever tasks that worker knows."""
    lapsed = f"its lease lapsed {_ago(fleet.now - (run.until or fleet.now))}"
    if fleet.alive:
        return f"{lapsed}: another worker takes it over"
    return f"it is held by the dead worker {run.worker} ({lapsed}): it {_fate(run)} once a worker runs: `rota worker`"


def _fate(run: Run) -> str:
    """Return what a rescue makes of `run`, in words."""
    action = settlement_of(run, Lost()).action
    if isinstance(action, Finish):
        return f"ends as {action.state} ({action.reason})"
    if run.cancel_requested:
        return "is cancelled"
    return "is paused" if run.pause_requested else "starts again"


async def all_running(store: Reads) -> list[Run]:
    """Return every running run. The report of a worker only counts the runs that it held at its last claim."""
    return [run async for run in all_runs(store, RunQuery(state=[State.RUNNING], limit=PAGE))]


def wants_a_worker(run: Run, now: float) -> bool:
    """Is `run` due or stranded, so that only a worker is missing?"""
    due = run.state is State.QUEUED and run.due_at <= now and not run.needs and not run.parked
    return due or is_stranded(run, now)


def unattended(run: Run, fleet: Fleet) -> str | None:
    """Return the sentence that no worker is there for `run`, which is due or stranded; None if there is one."""
    if is_stranded(run, fleet.now):
        return None if fleet.alive else stranded_words(run, fleet)
    return nobody(run.task, fleet, run.queue)


async def unfinished_words(store: Reads, run: Run, now: float) -> str:
    """Return in words which state an unfinished run is in, since when, and whether a worker is there for it."""
    match run.state:
        case State.RUNNING if is_stranded(run, now):
            return stranded_words(run, await see(store))
        case State.RUNNING:
            return f"it is running, for {max(0.0, now - (run.claimed_at or now)):.0f} s now, on worker {run.worker}"
        case State.PAUSED:
            return f"it is paused{f' ({run.note})' if run.note else ''}"
        case _ if run.needs:
            return f"it is queued and waits for {len(run.needs)} other {'run' if len(run.needs) == 1 else 'runs'}"
        case _ if run.due_at > now:
            return f"it is queued and due in {run.due_at - now:.0f} s"
        case _:
            missing = nobody(run.task, await see(store), run.queue)
            there = "a live worker knows its task" if missing is None else missing
            return f"it is queued and was due {now - run.due_at:.0f} s ago; {there}"


class Attendance:
    """Warns once per task and queue that somebody waits for runs and no worker is there for them."""

    def __init__(self) -> None:
        self._looked: dict[tuple[str, str], float] = {}
        self._warned: set[tuple[str, str]] = set()

    async def look(self, store: Reads, runs: Sequence[Run], now: float, clock: float) -> None:
        """Warn about those of `runs` that need a worker and have none. `clock` is the loop's time, `now` the
        store's."""
        wanted = {(run.task, run.queue): run for run in runs if wants_a_worker(run, now)}
        unlooked = {name: run for name, run in wanted.items() if name not in self._warned}
        fresh = [run for name, run in unlooked.items() if clock - self._looked.get(name, -LOOK_AGAIN) >= LOOK_AGAIN]
        if not fresh:
            return
        fleet = await see(store)
        for run in fresh:
            self._looked[run.task, run.queue] = clock
            missing = unattended(run, fleet)
            if missing is not None:
                self._warned.add((run.task, run.queue))
                log.warning("%s %s is awaited, but %s", run.task, run.id, missing)


async def late_words(store: Reads, id: str, timeout: float) -> tuple[Run | None, str]:
    """Return the run if it has ended, else None and the words why no result came within `timeout` seconds."""
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
