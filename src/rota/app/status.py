"""Status and health: what a process knows of itself, for people and for probes."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from rota.client.client import Client
from rota.domain.schedule import Schedule
from rota.domain.timing import moment, upcoming
from rota.engine.supervisor import Supervisor
from rota.errors import RotaError
from rota.store import RunQuery
from rota.task import Task


class LoopStatus(Struct, frozen=True):
    name: str
    alive: bool
    restarts: int
    error: str | None


class TaskStatus(Struct, frozen=True):
    """`alive`: this process runs the task; False if the task is disabled. `running`: how many of its runs are running
    here. `next`: the next tick of its schedules, None if there is none or all are paused."""

    alive: bool
    running: int
    next: datetime | None = None


class Status(Struct, frozen=True):
    """The engine of this process. `overdue` calls outlived their runs and still take a seat.

    `schedules` has the next tick of each schedule that this process has read: those of its code when it starts, later
    those that `app.schedules` reads. A pause or change by another process is missing until `await app.schedules.list()`
    reads all schedules again.
    """

    running: bool
    worker: str | None
    free: int
    overdue: int
    tasks: dict[str, TaskStatus]
    loops: list[LoopStatus]
    schedules: dict[str, datetime | None] = {}


class Health(Struct, frozen=True):
    ok: bool
    store: bool
    claiming: bool | None
    """Proof of life: the worker has claimed lately and its loop answers. None if no engine runs."""
    problem: str | None = None

    def __bool__(self) -> bool:
        return self.ok


def status_of(
    engine: Supervisor | None, tasks: Mapping[str, Task[..., ..., Any, Any]], schedules: Mapping[str, Schedule]
) -> Status:
    works = engine if engine is not None and engine.alive else None
    running = works.running if works else {}
    nexts = {id: _next(schedule) for id, schedule in schedules.items() if schedule.deadline is None}
    return Status(
        running=works is not None,
        worker=works.name if works else None,
        free=works.free if works else 0,
        overdue=works.overdue if works else 0,
        tasks={
            name: TaskStatus(
                works is not None and task.enabled,
                running.get(name, 0),
                min((at for id, at in nexts.items() if at is not None and schedules[id].task == name), default=None),
            )
            for name, task in tasks.items()
        },
        loops=[LoopStatus(loop.name, loop.alive, loop.restarts, loop.error) for loop in engine.loops] if engine else [],
        schedules=nexts,
    )


def _next(schedule: Schedule) -> datetime | None:
    at = upcoming(schedule, time.time())
    return None if at is None else moment(at)


async def health_of(engine: Supervisor | None, client: Client) -> Health:
    claiming = engine.healthy if engine else None
    try:
        store = await client.store()  # a probe asks once: it reports this moment
        await store.runs(RunQuery(ids=[]))
    except RotaError as error:
        return Health(False, False, claiming, str(error))
    return Health(claiming is not False, True, claiming, None if claiming is not False else _problem(engine))


def _problem(engine: Supervisor | None) -> str:
    if engine is None or (engine.alive and engine.loop.is_running()):
        return "the worker has not claimed lately"
    return "the engine's event loop was closed or does not turn: keep that loop running until `app.stop()`"
