"""Leftovers: queued runs whose task no code has, schedules that left the code, and submits of unknown names."""

import logging
from collections.abc import Collection

from rota.client.client import Client
from rota.client.fleet import INNER_TASKS, is_alive
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.domain.text import did_you_mean
from rota.errors import StoreUnavailable
from rota.store import Reads, RowQuery, WorkerSeen
from rota.store.paging import all_rows

log = logging.getLogger("rota")

PAGE = 1000
LISTED = 5
"""Tasks or schedules that a warning names one by one."""
NAMES = 1000
"""Unknown names that a process remembers to have warned about."""


async def log_orphans(store: Reads, known: Collection[str]) -> None:
    """Warn about queued runs whose task neither this app nor a live worker knows. `known` are the task names of this
    app."""
    workers = await store.rows(WorkerSeen)
    elsewhere = {task for worker in workers.items if is_alive(worker, workers.now) for task in worker.tasks}
    depths = (await store.depths()).items
    waiting = [depth for depth in depths if depth.queued and not depth.task.startswith(INNER_TASKS)]
    orphans = [depth for depth in waiting if depth.task not in known and depth.task not in elsewhere]
    for depth in orphans[:LISTED]:
        runs = "1 queued run" if depth.queued == 1 else f"{depth.queued:,} queued runs"
        log.warning(
            "%s of %s: no live worker knows that task; if it was renamed, give the new one aliases=[%r], and if it is "
            "gone, end them with `rota clear %s`",
            runs,
            depth.task,
            depth.task,
            depth.task,
        )
    if len(orphans) > LISTED:
        log.warning("queued runs of %d more tasks that no live worker knows: see `rota doctor`", len(orphans) - LISTED)


async def log_undeclared(store: Reads, owner: str, declared: Collection[str]) -> list[str]:
    """Warn about schedules that the code of this app declared once and no longer declares; return their ids."""
    stored = all_rows(store, Schedule, RowQuery(limit=PAGE))
    names = [row.id async for row in stored if row.owner == owner and row.id not in declared]
    if names:
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        log.warning(
            "no longer in the code of this app, and still firing: schedule %s%s; `rota sync --prune` deletes what the "
            "code does not declare",
            ", ".join(names[:LISTED]),
            more,
        )
    return names


async def log_leftovers(
    client: Client, known: Collection[str], owner: str | None, declared: Collection[str]
) -> set[str]:
    """Warn about what the store has and the code of the app no longer knows; return the ids of such schedules.

    Without an `owner`, no schedule can be attributed to this app.
    """
    try:
        await log_orphans(client, known)
        return set() if owner is None else set(await log_undeclared(client, owner, declared))
    except StoreUnavailable as error:
        log.warning("cannot look for what the code no longer knows: %s", error)
        return set()


class UnknownNames:
    """Warns once about each submitted task name that nobody has defined."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    async def warn(self, store: Reads, task: str, names: Collection[str]) -> None:
        """Warn if no worker has published `task`. `names` are the tasks of this app. No warning if the app defines no
        task and the store has none: then nobody knows what is right."""
        if task in self._warned or len(self._warned) >= NAMES:
            return
        published = {spec.name for spec in (await store.rows(TaskSpec)).items if spec.executor}
        if not names and not published:
            return
        self._warned.add(task)
        log.warning(
            "submitted %s, which neither this app nor any worker has defined: the run waits until one does%s",
            task,
            did_you_mean(task, {*names, *published}),
        )
