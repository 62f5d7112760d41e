"""Status and health: what a process knows of itself, for people and for probes."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from rota.client import Client
from rota.engine.supervisor import Supervisor
from rota.errors import RotaError
from rota.store import RunQuery


class LoopStatus(Struct, frozen=True):
    name: str
    alive: bool
    restarts: int
    error: str | None


class TaskStatus(Struct, frozen=True):
    """`alive`: this process would run it; `running`: how many of it run here now."""

    alive: bool
    running: int


class Status(Struct, frozen=True):
    """This process's engine. `overdue` calls outlived their runs and still take a seat."""

    running: bool
    worker: str | None
    free: int
    overdue: int
    tasks: dict[str, TaskStatus]
    loops: list[LoopStatus]


class Health(Struct, frozen=True):
    ok: bool
    store: bool
    claiming: bool | None
    """Proof of life: the worker has claimed lately and its loop answers. None where no engine runs."""
    problem: str | None = None

    def __bool__(self) -> bool:
        return self.ok


def status_of(engine: Supervisor | None, tasks: Mapping[str, Any]) -> Status:
    if engine is not None and not engine.alive:
        return Status(False, None, 0, 0, {name: TaskStatus(False, 0) for name in tasks}, _loops(engine))
    held = engine.running if engine else {}
    return Status(
        running=engine is not None,
        worker=engine.name if engine else None,
        free=engine.free if engine else 0,
        overdue=engine.overdue if engine else 0,
        tasks={name: TaskStatus(engine is not None, held.get(name, 0)) for name in tasks},
        loops=_loops(engine) if engine else [],
    )


def _loops(engine: Supervisor) -> list[LoopStatus]:
    return [LoopStatus(loop.name, loop.alive, loop.restarts, loop.error) for loop in engine.loops]


async def health_of(engine: Supervisor | None, client: Client) -> Health:
    claiming = engine.healthy if engine else None
    try:
        await (await client.store()).runs(RunQuery(ids=[]))
    except RotaError as error:
        return Health(False, False, claiming, str(error))
    return Health(claiming is not False, True, claiming, None if claiming is not False else _problem(engine))


def _problem(engine: Supervisor | None) -> str:
    if engine is None or (engine.alive and engine.loop.is_running()):
        return "the worker has not claimed lately"
    return "the engine's event loop was closed or does not turn: keep that loop running until `app.stop()`"
