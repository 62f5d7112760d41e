"""Checks of an open store of any kind: does it answer, does it take writes, is a worker alive?"""

import time
from collections.abc import Collection, Sequence

from rota.client.fleet import SILENT, Fleet, all_running, is_inner, is_stranded, see, stopping
from rota.doctor.checks import Check, Verdict, good, trip_times
from rota.domain.decision import DecisionCount
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.domain.text import coarse, one_line, plural, span
from rota.errors import RotaError
from rota.store import WRONG, Backend, MarkRow, RowQuery, RunQuery, Store, WorkerSeen
from rota.store.paging import row_pages
from rota.stores.unreadable import CURES, gathered

SLOW = 0.1
MOST = 1000
NAMED = 5
NAMED_ROWS: tuple[type[TaskSpec | Schedule | WorkerSeen], ...] = (TaskSpec, Schedule, WorkerSeen)


async def store_checks(backend: Backend) -> list[Check]:
    """Check reads, an empty write, depths, leases and workers."""
    try:
        async with backend.open() as store:
            checks = [await _latency(backend, store), await _clock(backend, store), await _depths(store)]
            fleet, running = await see(store), await all_running(store)
            checks += [_stranded(fleet, running), await _workers(store, fleet, running), *_clocks(fleet)]
            return [*checks, await _paused(store), await _legible(store), await _writable(store)]
    except RotaError as error:
        return [Check("store", Verdict.FAIL, str(error), "is it running, and is the url right? (ROTA_URL)")]


async def _latency(backend: Backend, store: Store) -> Check:
    middle, _ = await trip_times(store.depths)
    detail = f"{backend.url} answers in {span(middle)}"
    if middle > SLOW:
        return Check("store", Verdict.WARN, detail, "is its disk or network under load?")
    return good("store", detail)


async def _writable(store: Store) -> Check:
    try:
        await store.put([])
    except RotaError as error:
        return Check("writable", Verdict.FAIL, str(error), "submits fail until this is mended")
    return good("writable", "an empty write was taken")


async def _clock(backend: Backend, store: Store) -> Check:
    """A server has a clock of its own. An SQLite file only remembers the latest time that any process has seen."""
    ahead = (await store.depths()).now - time.time()
    if abs(ahead) > WRONG:
        word = "ahead of" if ahead > 0 else "behind"
        if backend.url.startswith("sqlite:"):
            advice = (
                "nothing becomes due until this host has caught up. If this host's clock is right, "
                "run rota doctor --mend-clock; else set it (NTP)"
            )
        else:
            advice = "due times go by the store's clock: set this host's (NTP)"
        return Check("clock", Verdict.WARN, f"the store is {coarse(abs(ahead))} {word} this host", advice)
    return good("clock", f"this host and the store agree within {span(abs(ahead))}")


def _clocks(fleet: Fleet) -> list[Check]:
    """Workers say by how much the clocks of their hosts are wrong."""
    wrong = {each.report.host or each.name: each.report.ahead for each in fleet.alive if each.report.ahead}
    words = [f"{host} is {coarse(abs(by))} {'ahead' if by > 0 else 'behind'}" for host, by in sorted(wrong.items())]
    if not words:
        return []
    return [Check("clocks", Verdict.WARN, f"of workers: {'; '.join(words[:NAMED])}", "set these hosts' clocks (NTP)")]


async def _depths(store: Store) -> Check:
    depths = [depth for depth in (await store.depths()).items if not is_inner(depth.task)]
    queued, running = sum(d.queued for d in depths), sum(d.running for d in depths)
    return good("depths", f"{queued:,} queued and {running:,} running, of {plural(len(depths), 'task')}")


def _stranded(fleet: Fleet, running: Sequence[Run]) -> Check:
    """Runs of dead workers. A live worker takes over such a run within a lease; without one, the runs only wait."""
    alive = fleet.alive
    patience = max((worker.report.lease or SILENT for worker in alive), default=0.0)
    late = [fleet.now - (run.until or 0.0) for run in running if is_stranded(run, fleet.now - patience)]
    if not late:
        return good("leases", "none lapsed without a rescue")
    whose = "run is held by a dead worker: its lease" if len(late) == 1 else "runs are held by dead workers: a lease"
    advice = "see the log of the live workers" if alive else "start a worker: it takes them over: rota worker"
    return Check("leases", Verdict.WARN, f"{len(late):,} {whose} lapsed {coarse(max(late))} ago", advice)


async def _workers(store: Store, fleet: Fleet, running: Sequence[Run]) -> Check:
    """Warn of runs whose task no live worker knows, and of schedules if no worker is alive."""
    there = fleet.alive
    detail = f"{plural(len(there), 'live worker')}, {plural(sum(w.report.seats for w in there), 'seat')}"
    if leaving := {worker.name for worker in stopping(fleet.workers, running, fleet.now)}:
        unfinished = sum(run.worker in leaving for run in running)
        detail = f"{detail}; {len(leaving)} stopping with {plural(unfinished, 'run')} in hand"
    known = {task for worker in there for task in worker.tasks}
    off = {spec.name for spec in (await store.rows(TaskSpec)).items if spec.starts_nothing}
    unknown = [depth for depth in (await store.depths()).items if depth.queued and depth.task not in known | off]
    orphans = [depth for depth in unknown if not is_inner(depth.task)]
    if orphans:
        queued = plural(sum(depth.queued for depth in orphans), "queued run")
        named = one_line(", ".join(depth.task for depth in orphans[:NAMED])) + (" and more" * (len(orphans) > NAMED))
        advice = "start one that defines them: rota worker" if there else "start one: rota worker"
        waits = "waits" if queued.startswith("1 ") else "wait"
        return Check("workers", Verdict.WARN, f"{detail}; {queued} {waits}, and none knows {named}", advice)
    if unserved := await _unserved(store, there, off):
        advice = f"start one that serves it: rota worker --queues {unserved}"
        return Check("workers", Verdict.WARN, f"{detail}; no live worker serves queue {unserved}", advice)
    if not there and (waiting := await _active(store)):
        return Check("workers", Verdict.WARN, f"{detail}; nobody fires {waiting}", "start one: rota worker")
    return good("workers", detail)


async def _unserved(store: Store, there: Sequence[WorkerSeen], off: Collection[str]) -> str:
    """Return a queue that a due run waits in and that no live worker serves; empty if there is none. Only looked for if
    all workers name their queues."""
    if not there or not all(worker.queues for worker in there):
        return ""
    page = await store.runs(RunQuery(state=[State.QUEUED], limit=MOST))
    due = [run for run in page.runs if run.due_at <= page.now and not run.needs and run.task not in off]
    return next((run.queue for run in due if not any(worker.takes(run.task, run.queue) for worker in there)), "")


async def _active(store: Store) -> str:
    """Return the names of some schedules that have a tick ahead; empty if there is none."""
    found = (await store.rows(Schedule, RowQuery(limit=MOST))).items
    names = [one_line(each.id) for each in found if each.next_at is not None and not each.paused]
    more = f" and {plural(len(names) - NAMED, 'other')}" if len(names) > NAMED else ""
    return f"schedule {', '.join(names[:NAMED])}{more}" if names else ""


async def _paused(store: Store) -> Check:
    paused = sorted(spec.name for spec in (await store.rows(TaskSpec)).items if spec.paused)
    if not paused:
        return good("paused", "no task is")
    advice = "if that is not meant: rota tasks resume"
    return Check("paused", Verdict.WARN, one_line(", ".join(paused)), advice)


async def _legible(store: Store) -> Check:
    """Report rows that this version cannot read; all other reads leave them out."""
    with gathered() as odd:
        for kind in NAMED_ROWS:
            async for _ in row_pages(store, kind, RowQuery(limit=MOST)):
                pass
        await store.rows(MarkRow, RowQuery(limit=MOST))
        await store.rows(DecisionCount, RowQuery(limit=MOST))
        await store.stats()
        await store.runs(RunQuery(state=[State.QUEUED, State.RUNNING, State.PAUSED], limit=MOST))
    if not odd:
        return good("rows", "all can be read")
    named = one_line(", ".join(f"{kind} {name} ({why})" for (kind, name), why in list(odd.items())[:NAMED]))
    more = f" and {plural(len(odd) - NAMED, 'other')}" if len(odd) > NAMED else ""
    cures = dict.fromkeys(f"{kind}: {CURES[kind]}" for kind, _ in odd)
    return Check("rows", Verdict.WARN, f"cannot be read and are left out: {named}{more}", "; ".join(cures))
