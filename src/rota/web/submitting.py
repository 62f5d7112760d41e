"""Submitting by name: the call of a task whose code may be in another process."""

from typing import Any

from msgspec import Struct

from rota.app.core import core_of
from rota.client.client import Client
from rota.domain.intake import Options, check_name
from rota.domain.run import NewRun
from rota.domain.spec import TaskSpec
from rota.errors import RotaError
from rota.store import RowQuery
from rota.task import Call as TaskCall
from rota.task import definition_of
from rota.task.remote import call_by_spec
from rota.web.problems import Problem, problem_of
from rota.web.rights import Right
from rota.web.routes import Call


class Made(Struct, frozen=True):
    """A call of a task, checked."""

    call: TaskCall

    async def run(self, client: Client) -> NewRun:
        try:
            if self.call.once is None:
                return self.call.to_run()
            return self.call.to_run_at(await client.now())
        except RotaError as error:
            raise problem_of(error) from None


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
    if not call.principal.may(right, task):
        raise Problem(403, f"{call.principal.name} needs the right {right} for the task {task}")
    try:
        known = core_of(call.app).registry.names().get(check_name(task))
        if known is not None:
            return Made(definition_of(known).call((), dict(args), options))
        found = (await call.client.rows(TaskSpec, RowQuery(names=[task]))).items
        if not unknown_ok and (not found or not found[0].executor):
            raise Problem(404, f"no worker has published a task {task}", reason="unknown_task")
        return Made(call_by_spec(found[0] if found else TaskSpec(task), (), args, options))
    except RotaError as error:
        raise problem_of(error) from None
    except ValueError as error:
        raise Problem(422, str(error)) from None
