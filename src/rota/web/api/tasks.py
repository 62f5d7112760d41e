"""Tasks: what the code defines and what the store knows of them; pause, resume, touch, why."""

from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from rota.app.core import core_of
from rota.client.overrides import spec_of
from rota.client.pauses import pause_task
from rota.domain.argument_schemas import schema_of, schema_of_spec
from rota.domain.spec import TaskSpec
from rota.domain.trial import Trial
from rota.errors import RunNotFound
from rota.store import Command, RowQuery
from rota.task import definition_of
from rota.views.activity_keys import KeyView, key_views
from rota.views.decisions import why_view
from rota.views.shapes import listing, shape_of
from rota.views.task_detail import TaskDetail, task_detail
from rota.views.tasks import TaskView, spec_in_store, task_rows, task_view
from rota.views.values import iso, record
from rota.web.api.runs import WHY
from rota.web.api.submits import TriedBody
from rota.web.api.task_specs import spec_tag
from rota.web.conditions import IF_NONE_MATCH
from rota.web.inputs import unix
from rota.web.problems import Flaw, Problem
from rota.web.rights import Right, is_own
from rota.web.routes import API, Answer, Call, Moment, NoQuery, Route, Text, get, write
from rota.web.submitting import call_named, check_size, forbidden, touch_named

TASK = shape_of(TaskView)
TASK_DETAIL = shape_of(TaskDetail)


class About(Struct, frozen=True, forbid_unknown_fields=True):
    """`key`: only this key of the task."""

    key: Text | None = None


class KeysQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`q`: only keys that contain this text."""

    q: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class SwitchBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`key`: only the runs of this key."""

    note: Text | None = None
    key: Text | None = None


class TaskPauseBody(SwitchBody, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`key`: only the runs of this key. `until`: the pause of a task ends then by itself."""

    until: Moment | None = None


class TouchBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`key`: in place of the key that the task makes of its arguments."""

    args: dict[str, Any] = {}
    key: Text | None = None
    note: Text | None = None


class Touched(Struct, frozen=True):
    """`due_at`: when the run of the key is due; null without one."""

    accepted: bool
    reason: str
    run: str | None
    due_at: str | None


class Switched(Struct, frozen=True):
    """`changed`: False if the task was so already."""

    changed: bool


async def _views(call: Call[NoQuery, None]) -> dict[str, TaskView]:
    registry = core_of(call.app).registry
    rows, flows = await task_rows(call.client), call.app.flows
    names = sorted({*registry.tasks, *rows})
    return {
        name: task_view(name, registry.find(name), rows.get(name), flows.get(name))
        for name in names
        if call.principal.may(Right.READ, name)
    }


async def tasks(call: Call[NoQuery, None]) -> Answer:
    found = await _views(call)
    items = [record(view) for view in found.values()]
    return Answer({"items": items, "next": None, "now": iso(await call.client.now())})


async def task(call: Call[NoQuery, None]) -> Answer:
    name = call.path["name"]
    registry, rows = core_of(call.app).registry, await task_rows(call.client)
    if name not in {*registry.tasks, *rows} or not call.principal.may(Right.READ, name):
        raise _unknown(name)
    known, row = registry.find(name), rows.get(name)
    spec = await spec_of(call.client, name, None if known is None else definition_of(known).spec)
    view = task_view(name, known, row, call.app.flows.get(name))
    in_store = spec_in_store(name, known, None if row is None else row.spec)
    detail = await task_detail(call.client, view, in_store, [each.depth for each in rows.values()])
    return Answer(record(detail), headers={"ETag": spec_tag(spec)})


async def schema(call: Call[NoQuery, None]) -> Answer:
    """The code of this process says it if it has the task; else the published spec does. The answer is the schema and
    nothing else."""
    name = call.path["name"]
    if call.principal.may(Right.READ, name):
        known = core_of(call.app).registry.find(name)
        if known is not None:
            return Answer(msgspec.json.encode(schema_of(definition_of(known).signature)))
        found = (await call.client.rows(TaskSpec, RowQuery(names=[name]))).items
        if found:
            return Answer(msgspec.json.encode(schema_of_spec(found[0])))
    raise _unknown(name)


def _unknown(name: str) -> Problem:
    return Problem(404, f"no task {name} is known here", reason="unknown_task")


async def why(call: Call[About, None]) -> Answer:
    name = call.path["name"]
    if not call.principal.may(Right.READ, name):
        raise _unknown(name)
    return Answer(why_view(await call.app.why(name, call.query.key), call.prefix + API))


async def pause(call: Call[NoQuery, TaskPauseBody]) -> Answer:
    until = call.body.until
    return await _switch(call, Command.PAUSE, None if until is None else unix(until, "until", "/until"))


async def resume(call: Call[NoQuery, SwitchBody]) -> Answer:
    return await _switch(call, Command.RESUME)


async def _switch(call: Call[NoQuery, Any], command: Command, until: float | None = None) -> Answer:
    name = call.path["name"]
    known = core_of(call.app).registry.find(name)
    if not call.principal.may(Right.OPERATE, name) or (known is None and name not in await task_rows(call.client)):
        raise _unknown(name)
    names = [name] if known is None else [known.name, *known.aliases]
    body, by = call.body, call.principal.name
    return Answer(Switched(await pause_task(call.client, command, names, body.key, body.note, by, until)))


async def touch(call: Call[NoQuery, TouchBody]) -> Answer:
    """Always 200: a touch that makes no run is an answer, too."""
    name = call.path["name"]
    if is_own(name) or not call.principal.may(Right.SUBMIT, name):
        raise forbidden(call.principal, Right.SUBMIT, name)
    args, key = call.body.args, call.body.key
    check_size(msgspec.json.encode(args))
    decision = await (call.app.touch(name, **args) if key is None else touch_named(call, name, args, key))
    due_at = None
    if decision.run:
        with suppress(RunNotFound):  # it has ended and gone meanwhile
            due_at = iso((await call.client.run(decision.run)).due_at)
    return Answer(Touched(bool(decision), str(decision.reason), decision.run or None, due_at))


async def attempt(call: Call[NoQuery, TriedBody]) -> Answer:
    """What a submit would answer now, guard by guard; nothing changes."""
    body, name = call.body, call.path["name"]
    if body.task not in (None, name):
        words = f"the path is about the task {name}"
        raise Problem(422, words, errors=[Flaw("/task", words)])
    made = await call_named(call, name, body.args, body.options(), body.unknown_ok)
    return Answer(record(await call.client.try_put(await made.run(call.client))))


async def keys(call: Call[KeysQuery, None]) -> Answer:
    name = call.path["name"]
    items, more = await key_views(call.client, await _published(call, name), call.query.q)
    return Answer(
        {"items": [record(item) for item in items], "next": None, "more": more, "now": iso(await call.client.now())}
    )


async def _published(call: Call[Any, Any], name: str) -> TaskSpec:
    """Return the spec of a task that the caller may see."""
    rows = (await call.client.rows(TaskSpec, RowQuery(names=[name]))).items
    known = core_of(call.app).registry.find(name)
    if not call.principal.may(Right.READ, name) or not (rows or known):
        raise _unknown(name)
    return definition_of(known).spec if known else rows[0]


KEYS = listing(shape_of(KeyView))
KEYS["properties"]["more"] = {"type": "boolean"}
PATH = f"{API}/tasks/{{name}}"
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/tasks", "All tasks", Right.READ, tasks, listing(TASK)),
    get(PATH, "One task", Right.READ, task, TASK_DETAIL, conditions=(IF_NONE_MATCH,)),
    get(f"{PATH}/schema", "The arguments as JSON Schema", Right.READ, schema, {"type": "object"}),
    get(f"{PATH}/keys", "What waits, rests and ended last, key by key", Right.READ, keys, KEYS, KeysQuery),
    get(f"{PATH}/why", "Why does it not run?", Right.READ, why, WHY, About),
    write(
        "POST", f"{PATH}/pause", "Start no more runs of a task", Right.OPERATE, pause, TaskPauseBody, {200: Switched}
    ),
    write(
        "POST", f"{PATH}/resume", "Let runs of a task start again", Right.OPERATE, resume, SwitchBody, {200: Switched}
    ),
    write(
        "POST",
        f"{PATH}/try",
        "What a submit would answer, guard by guard",
        Right.SUBMIT,
        attempt,
        TriedBody,
        {200: shape_of(Trial)},
        (404,),
    ),
    write("POST", f"{PATH}/touch", "Touch a task", Right.SUBMIT, touch, TouchBody, {200: Touched}),
]
