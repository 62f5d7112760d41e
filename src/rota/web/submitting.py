"""Submitting by name: the call of a task whose code may be in another process."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rota.app.app import Rota
from rota.app.core import core_of
from rota.client.client import Client
from rota.domain import codec
from rota.domain.decision import Decision, Reason
from rota.domain.intake import Options, check_name
from rota.domain.run import NewRun
from rota.domain.spec import TaskSpec
from rota.engine.traces import NAMES
from rota.errors import RotaError
from rota.store import RowQuery
from rota.task import Call as TaskCall
from rota.task import definition_of
from rota.task.call import touch_terms
from rota.task.definition import Definition
from rota.task.remote import call_by_spec
from rota.web.problems import Flaw, Problem, problem_of
from rota.web.rights import Principal, Right, is_own
from rota.web.routes import Call

TRACESTATE = 512
"""Characters of `tracestate` that are taken along, as W3C Trace Context asks for."""
_PARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class Named(Struct):
    """The task of a body that does not fit otherwise."""

    task: str = ""


class Known(Struct, frozen=True):
    """A task by its name: its code is in this process, or else its published spec says how to call it."""

    spec: TaskSpec
    definition: Definition | None = None

    def call(self, args: dict[str, Any], options: Options, unknown_ok: bool) -> TaskCall:
        """Return the call with `args` by name; raise a Problem that says what is wrong with them."""
        try:
            if self.definition is not None:
                made = self.definition.call((), args, options)
            elif not self.spec.executor and not unknown_ok:
                raise Problem(404, f"no worker has published a task {self.spec.name}", reason="unknown_task")
            else:
                made = call_by_spec(self.spec, (), args, options)
        except RotaError as error:
            raise problem_of(error) from None
        except ValueError as error:
            raise Problem(422, str(error)) from None
        check_size(made.args)
        return made


def check_size(args: bytes) -> None:
    """Refuse arguments that are larger than a run may carry."""
    if len(args) > codec.ARGS_LIMIT:
        words = f"the arguments take {len(args):,} bytes, more than the {codec.ARGS_LIMIT:,} a run may carry"
        raise Problem(413, words, errors=[Flaw("/args", words)])


class Made(Struct, frozen=True):
    """A call of a task, checked."""

    call: TaskCall

    async def run(self, client: Client) -> NewRun:
        now = 0.0 if self.call.once is None else await client.now()
        return run_at(self.call, now)


def run_at(call: TaskCall, now: float) -> NewRun:
    """Return the run of a call; raise a Problem if its options do not fit."""
    try:
        return call.to_run_at(now)
    except RotaError as error:
        raise problem_of(error) from None


def trace_of(call: Call[Any, Any]) -> dict[str, str]:
    """Return the trace context of the request as headers of a run; nothing if there is none that can be read."""
    given = {name: value for name in NAMES if (value := call.request.headers.get(name)) is not None}
    if not _PARENT.fullmatch(given.get("traceparent", "")) or len(given.get("tracestate", "")) > TRACESTATE:
        return {}
    return given


def traced(options: Options, trace: dict[str, str]) -> Options:
    return replace(options, headers={**trace, **(options.headers or {})}) if trace else options


async def with_parameters(app: Rota, problem: Problem, task: object) -> Problem:
    """Return the problem of a body whose `args` are a list, with the names of the parameters."""
    lists = [flaw for flaw in problem.errors if flaw.pointer.endswith("/args") and "got `array`" in flaw.detail]
    if not lists:
        return problem
    if not isinstance(task, str):
        with suppress(msgspec.DecodeError):
            task = msgspec.json.decode(problem.content, type=Named).task
    words = f"args is an object, the arguments by name{await _names_of(app, str(task))}"
    return Problem(422, f"the body: {words}", errors=[Flaw(lists[0].pointer, words)])


async def _names_of(app: Rota, task: str) -> str:
    known = core_of(app).registry.find(task)
    specs = [definition_of(known).spec] if known else (await app.client().rows(TaskSpec, RowQuery(names=[task]))).items
    return f": {', '.join(specs[0].parameters)}" if specs and specs[0].parameters else ""


async def touch_named(call: Call[Any, Any], task: str, args: dict[str, object], key: str) -> Decision:
    """Touch a key of one's own, whatever the arguments say."""
    core = core_of(call.app)
    known = core.registry.find(task)
    if known is not None:
        made = definition_of(known).touch_call((), dict(args))
    else:
        found = (await call.client.rows(TaskSpec, RowQuery(names=[task]))).items
        if not found or not found[0].executor:
            return Decision("", Reason.UNKNOWN_TASK)
        made = None
        if found[0].activity is not None:
            spec, options = touch_terms(found[0], found[0].activity)
            made = call_by_spec(spec, (), args, replace(options, key=key))
    if made is None:
        return Decision("", Reason.NO_ACTIVITY)
    return await core.submitter.touch(replace(made, options=replace(made.options, key=key)).to_touch())


def forbidden(principal: Principal, right: Right, task: str, errors: Sequence[Flaw] = ()) -> Problem:
    """Return the problem of a caller who may not do this with `task`."""
    if is_own(task):
        return Problem(
            403, f"{task} is a task of rota itself: nobody submits, changes or claims its runs", errors=errors
        )
    return Problem(403, f"{principal.name} needs the right {right} for the task {task}", errors=errors)


async def known_tasks(
    call: Call[Any, Any], names: Collection[str], right: Right = Right.SUBMIT
) -> dict[str, Known | Problem]:
    """Return what each name stands for, or why this caller cannot call it. The store is asked once, for all names of
    which this process has no code."""
    found: dict[str, Known | Problem] = {}
    elsewhere: list[str] = []
    registry = core_of(call.app).registry
    for name in names:
        if is_own(name) or not call.principal.may(right, name):
            found[name] = forbidden(call.principal, right, name)
            continue
        try:
            known = registry.find(check_name(name))
        except ValueError as error:
            found[name] = Problem(422, str(error))
            continue
        if known is None:
            elsewhere.append(name)
        else:
            definition = definition_of(known)
            found[name] = Known(definition.spec, definition)
    specs = (await call.client.rows(TaskSpec, RowQuery(names=elsewhere))).items if elsewhere else []
    published = {spec.name: spec for spec in specs}
    return found | {name: Known(published.get(name) or TaskSpec(name)) for name in elsewhere}


async def call_named(
    call: Call[Any, Any],
    task: str,
    args: dict[str, object],
    options: Options,
    unknown_ok: bool,
    right: Right = Right.SUBMIT,
) -> Made:
    """Return the call of `task` with `args` by name. The code of this process checks the arguments if it has the task;
    else the published spec says how to call it."""
    known = (await known_tasks(call, [task], right))[task]
    if isinstance(known, Problem):
        raise known
    if right is Right.SUBMIT:
        options = traced(options, trace_of(call))
    return Made(known.call(args, options, unknown_ok))
