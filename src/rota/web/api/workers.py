"""Workers: who is there to do the work; let one be quiet, work again, or stop."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rota.store import RowQuery, WorkerSeen
from rota.views.shapes import listing, shape_of
from rota.views.values import iso, record
from rota.views.workers import StallView, WorkerView, worker_views
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, NoQuery, NoteBody, Route, get, post

WORKER = shape_of(WorkerView)


class Directed(Struct, frozen=True):
    """What people ask of a worker now. `changed`: False if it was asked before."""

    worker: str
    changed: bool
    quiet: bool
    stop: bool


async def _views(call: Call[Any, Any]) -> list[WorkerView]:
    """Return the workers, for a credential of some tasks those that know one of them."""
    return [
        view
        for view in await worker_views(call.client)
        if not call.principal.tasks or any(call.principal.may(Right.READ, task) for task in view.tasks)
    ]


def _shown(call: Call[Any, Any], view: WorkerView) -> dict[str, object]:
    tasks = [task for task in view.tasks if call.principal.may(Right.READ, task)]
    stalls = [_stall(call, stall) for stall in view.stalls if not stall.task or stall.task in tasks]
    return record(view) | {"tasks": tasks, "queues": list(view.queues), "stalls": stalls}


def _stall(call: Call[Any, Any], stall: StallView) -> dict[str, object]:
    """What blocked a loop may be of any task: only who may read all payloads sees its stack."""
    seen = call.principal.may(Right.PAYLOAD, stall.task) and bool(stall.task or not call.principal.tasks)
    return record(stall if seen else replace(stall, stack=None))


async def workers(call: Call[NoQuery, None]) -> Answer:
    items = [_shown(call, view) for view in await _views(call)]
    return Answer({"items": items, "next": None, "now": iso(await call.client.now())})


async def worker(call: Call[NoQuery, None]) -> Answer:
    return Answer(_shown(call, await _found(call)))


async def _found(call: Call[Any, Any]) -> WorkerView:
    for view in await _views(call):
        if view.name == call.path["name"]:
            return view
    raise Problem(404, "no such worker was seen in the last hour")


async def quiet(call: Call[NoQuery, NoteBody]) -> Answer:
    return await _direct(call, quiet=True)


async def resume(call: Call[NoQuery, NoteBody]) -> Answer:
    return await _direct(call, quiet=False)


async def stop(call: Call[NoQuery, NoteBody]) -> Answer:
    return await _direct(call, stop=True)


async def _direct(call: Call[NoQuery, NoteBody], quiet: bool | None = None, stop: bool = False) -> Answer:
    """202: the worker hears of it with its next claim."""
    found = await _found(call)
    foreign = [task for task in found.tasks if not call.principal.may(Right.OPERATE, task)]
    if foreign:
        raise Problem(403, f"{call.principal.name} needs the right {Right.OPERATE} for all tasks of the worker")
    (changed,) = (await call.client.direct([found.name], None, quiet, stop)).items
    seen = (await call.client.rows(WorkerSeen, RowQuery(names=[found.name]))).items
    orders = seen[0].orders if seen else None
    return Answer(Directed(found.name, changed, bool(orders and orders.quiet), bool(orders and orders.stop)), 202)


PATH = f"{API}/workers/{{name:path}}"
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/workers", "The workers that the store has seen in the last hour", Right.READ, workers, listing(WORKER)),
    get(PATH, "One worker", Right.READ, worker, WORKER),
    post(f"{PATH}/quiet", "Let a worker start no more runs", Right.OPERATE, quiet, NoteBody, {202: Directed}),
    post(f"{PATH}/resume", "Let a quiet worker start runs again", Right.OPERATE, resume, NoteBody, {202: Directed}),
    post(f"{PATH}/stop", "Stop a worker as a signal does", Right.OPERATE, stop, NoteBody, {202: Directed}),
]
