"""Tasks: what the code defines and what the store knows of them; pause, resume, touch, why."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.app.core import core_of
from rota.client.pauses import pause_task
from rota.domain.guards import Unique
from rota.domain.intake import Options
from rota.domain.spec import TaskSpec
from rota.domain.trial import Trial
from rota.store import Command, RowQuery
from rota.views.decisions import why_view
from rota.views.shapes import listing, shape_of
from rota.views.tasks import TaskView, task_rows, task_view
from rota.views.values import iso, record
from rota.web.api.runs import WHY
from rota.web.api.task_specs import PULL, spec_tag
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, NoQuery, Route, Text, get, write
from rota.web.submitting import call_named

TASK = shape_of(TaskView)


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """`key`: only this key of the task."""

    key: Text | None = None


class SwitchBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`key`: only the runs of this key."""

    note: Text | None = None
    key: Text | None = None


class TouchBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    args: dict[str, Any] = {}


class Touched(Struct, frozen=True):
    accepted: bool
    reason: str
    run: str | None


class Switched(Struct, frozen=True):
    """`changed`: False if the task was so already."""

    changed: bool


async def _views(call: Call[NoQuery, None]) -> dict[str, TaskView]:
    registry = core_of(call.app).registry
    rows, flows = await task_rows(call.client), call.app.flows
    names = sorted({*registry.tasks, *rows})
    return {
        name: task_view(name, registry.names().get(name), rows.get(name), flows.get(name))
        for name in names
        if call.principal.may(Right.READ, name)
    }


async def tasks(call: Call[NoQuery, None]) -> Answer:
    found = await _views(call)
    items = [record(view) for view in found.values()]
    return Answer({"items": items, "next": None, "now": iso(await call.client.now())})


async def task(call: Call[NoQuery, None]) -> Answer:
    name = call.path["name"]
    found = (await _views(call)).get(name)
    if found is None:
        raise _unknown(name)
    if found.executor != PULL:
        return Answer(record(found))
    rows = (await call.client.rows(TaskSpec, RowQuery(names=[name]))).items
    return Answer(record(found), headers={"ETag": spec_tag(rows[0])} if rows else {})


def _unknown(name: str) -> Problem:
    return Problem(404, f"no task {name} is known here", reason="unknown_task")


async def why(call: Call[About, None]) -> Answer:
    name = call.path["name"]
    if not call.principal.may(Right.READ, name):
        raise _unknown(name)
    return Answer(why_view(await call.app.why(name, call.query.key)))


async def pause(call: Call[NoQuery, SwitchBody]) -> Answer:
    return await _switch(call, Command.PAUSE)


async def resume(call: Call[NoQuery, SwitchBody]) -> Answer:
    return await _switch(call, Command.RESUME)


async def _switch(call: Call[NoQuery, SwitchBody], command: Command) -> Answer:
    name = call.path["name"]
    known = core_of(call.app).registry.names().get(name)
    if not call.principal.may(Right.OPERATE, name) or (known is None and name not in await task_rows(call.client)):
        raise _unknown(name)
    names = [name] if known is None else [known.name, *known.aliases]
    body = call.body
    return Answer(Switched(await pause_task(call.client, command, names, body.key, body.note, call.principal.name)))


async def touch(call: Call[NoQuery, TouchBody]) -> Answer:
    """Always 200: a touch that makes no run is an answer, too."""
    name = call.path["name"]
    if not call.principal.may(Right.SUBMIT, name):
        raise Problem(403, f"{call.principal.name} needs the right {Right.SUBMIT} for the task {name}")
    decision = await call.app.touch(name, **call.body.args)
    return Answer(Touched(bool(decision), str(decision.reason), decision.run or None))


class TryBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A submit to try: as for `POST /runs`, without the task."""

    args: dict[str, Any] = {}
    key: Text | None = None
    unique: Unique | None = None
    delay: Annotated[float, Meta(ge=0)] | None = None
    at: datetime | None = None
    queue: Text | None = None
    unknown_ok: bool = False


async def attempt(call: Call[NoQuery, TryBody]) -> Answer:
    """What a submit would answer now, guard by guard; nothing changes."""
    body, name = call.body, call.path["name"]
    options = Options(key=body.key, unique=body.unique, delay=body.delay, at=body.at, queue=body.queue)
    made = await call_named(call, name, body.args, options, body.unknown_ok)
    return Answer(record(await call.client.try_put(await made.run(call.client))))


PATH = f"{API}/tasks/{{name}}"
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/tasks", "All tasks", Right.READ, tasks, listing(TASK)),
    get(PATH, "One task", Right.READ, task, TASK),
    get(f"{PATH}/why", "Why does it not run?", Right.READ, why, WHY, About),
    write("POST", f"{PATH}/pause", "Start no more runs of a task", Right.OPERATE, pause, SwitchBody, {200: Switched}),
    write(
        "POST", f"{PATH}/resume", "Let runs of a task start again", Right.OPERATE, resume, SwitchBody, {200: Switched}
    ),
    write(
        "POST",
        f"{PATH}/try",
        "What a submit would answer, guard by guard",
        Right.SUBMIT,
        attempt,
        TryBody,
        {200: shape_of(Trial)},
        (404,),
    ),
    write("POST", f"{PATH}/touch", "Touch a task", Right.SUBMIT, touch, TouchBody, {200: Touched}),
]
