"""Starting: fire the schedules with AtStart when the first worker starts."""

import logging
from collections.abc import Sequence

from rota.client.client import Client
from rota.client.fleet import SILENT, is_alive
from rota.domain.schedule import Schedule
from rota.domain.starts import begun, is_first, with_last_start
from rota.errors import ScheduleChanged
from rota.store import Declared, RowQuery, Terms, WorkerSeen

log = logging.getLogger("rota")

PAGE = 1000
"""Rows in one page."""
TRIES = 20
"""How often a start that met another change of the schedule is judged again."""


async def begin(client: Client, ids: Sequence[str]) -> None:
    """Fire the schedules `ids`, whose trigger is AtStart, if no live worker knows their tasks. A worker calls this
    before its first claim.

    Of several workers that start at once, one fires a schedule: the store takes a start only on the version of the
    schedule that the worker has read.
    """
    for id in ids:
        for _ in range(TRIES):
            first = await _started(client, id)
            if first is None or await _declare(client, first, first.version) is not Declared.CONFLICT:
                break
        else:
            log.warning("schedule %s changes all the time: its start is left to the next worker", id)


async def declare_start(client: Client, schedule: Schedule) -> Declared:
    """Declare a schedule with AtStart, on the version that was read: otherwise the declaration of one worker would take
    back the start of another."""
    for _ in range(TRIES):
        reply = await client.rows(Schedule, RowQuery(names=[schedule.id]))
        known = reply.items[0] if reply.items else None
        first = with_last_start(schedule, reply.now, known)
        answer = await _declare(client, first, known.version if known else 0)
        if answer is not Declared.CONFLICT:
            return answer
    raise ScheduleChanged(f"schedule {schedule.id} changes all the time; try again")


async def _declare(client: Client, schedule: Schedule, version: int) -> Declared:
    return (await client.declare([schedule], Terms({schedule.id: version}))).items[0]


async def _started(client: Client, id: str) -> Schedule | None:
    """Return the schedule with a start now; None if a live worker knows its task.

    The schedule is read before the workers: a start between the two reads changes the version of the schedule.
    """
    reply = await client.rows(Schedule, RowQuery(names=[id]))
    workers = [worker async for worker in client.all_rows(WorkerSeen, RowQuery(limit=PAGE))]
    for schedule in reply.items:
        alive = any(schedule.task in worker.tasks and is_alive(worker, reply.now) for worker in workers)
        others = [worker.seen_at for worker in workers if not worker.tasks or schedule.task in worker.tasks]
        if is_first(schedule, reply.now, alive, others, SILENT):
            return begun(schedule, reply.now)
    return None
