"""Adoption: the tasks of django.tasks that a project defines, as tasks of its Rota.

A task is found in the modules of the project, by its Task object, and its name is its `module_path`. No name that a
store has is ever imported.
"""

import inspect
import logging
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, cast

import msgspec
from msgspec import Struct

from rota.app.app import Rota
from rota.app.core import core_of
from rota.django import discovery
from rota.django.calls import AttemptsRetry, handler_for
from rota.django.rota_task import policies_of
from rota.django.tasks_api import AnyTask, BaseTaskBackend, Task
from rota.domain.headers import merged
from rota.errors import InvalidOptions, RotaError
from rota.task import Task as OwnTask
from rota.task import definition_of

log = logging.getLogger("rota.django")

POSITIONAL = "rota-django-args"
"""The header that says how many of the stored arguments were given by position. A run without it has none."""


class Adopted(Struct, frozen=True):
    """A Django task, and the task of rota that its runs belong to."""

    task: AnyTask
    own: OwnTask[..., ..., Any, Any]

    def split(self, args: bytes, headers: Mapping[str, str]) -> tuple[list[Any], dict[str, Any]]:
        """Return the stored arguments as `enqueue` got them: by position and by name."""
        named: dict[str, Any] = msgspec.json.decode(args) if args else {}
        parameters = definition_of(self.own).signature.parameters.parameters.values()
        star = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")
        stars = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), "")
        by_position = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        given = headers.get(POSITIONAL, "")
        first = by_position[: int(given) if given.isdecimal() else 0]
        args_given = [named.pop(name) for name in first if name in named] + named.pop(star, [])
        return args_given, named.pop(stars, {}) | named


_adopted: dict[str, Adopted] = {}
mistakes: dict[str, str] = {}
"""The tasks whose options are wrong, and why."""


def adopt_found(app: Rota) -> None:
    """Make tasks of `app` of all Task objects in the discovered modules. A task with wrong options is told, and the
    others work."""
    from rota.django.tasks import RotaBackend

    for module in list(discovery.modules.values()):
        for task in _tasks_in(module):
            try:
                if isinstance(backend_of(task), RotaBackend):
                    adopt(app, task)
            except RotaError as error:
                mistakes[task.module_path] = str(error)
                log.error("the task %s is unknown: %s", task.module_path, error)


def adopt(app: Rota, task: AnyTask) -> Adopted:
    """Return the adopted task of `task`, which may be one that `using` made."""
    name = task.module_path
    found = _adopted.get(name)
    if found is None or found.own.name not in app.tasks:
        base = _as_defined(task)
        own = core_of(app).registry.define(handler_for(base), _options(base))
        found = _adopted[name] = Adopted(base, own)
    return found


def adopted(name: str) -> Adopted | None:
    """Return the task of this name or alias, if this project has it."""
    found = _adopted.get(name)
    if found is None:
        return next((each for each in _adopted.values() if name in each.own.aliases), None)
    return found


def run_headers(positional: int, inherited: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the headers of a run with so many arguments by position, that a handler with `inherited` headers may have
    enqueued."""
    if not positional and POSITIONAL not in inherited:
        return None
    return merged(inherited, {POSITIONAL: str(positional)})


def backend_of(task: AnyTask) -> BaseTaskBackend:
    return task.get_backend()


def _tasks_in(module: ModuleType) -> Iterator[AnyTask]:
    seen: set[str] = set()
    for value in list(vars(module).values()):
        if isinstance(value, Task) and value.module_path not in seen:
            found = cast("AnyTask", value)
            seen.add(found.module_path)
            yield _as_defined(found)


def _as_defined(task: AnyTask) -> AnyTask:
    """Return the Task that the module of the function has under the name of the function; else `task` itself."""
    found: object = sys.modules.get(task.func.__module__)
    for part in task.func.__qualname__.split("."):
        found = getattr(found, part, None)
    defined = cast("AnyTask", found) if isinstance(found, Task) else task
    return defined if defined.func is task.func else task


def _options(task: AnyTask) -> dict[str, Any]:
    """Return the options of `@app.task` that a Django task stands for."""
    given = policies_of(task)
    attempts, backoff = given.pop("max_attempts", None), given.pop("backoff", None)
    if attempts is not None or backoff is not None:
        if "retry" in given:
            raise InvalidOptions(f"task {task.module_path}: give retry=, or max_attempts= and backoff=, not both")
        given["retry"] = retry_of(task.module_path, attempts)
    for option in ("on_success", "on_failure", "on_cancel"):
        if isinstance(given.get(option), Task):
            given[option] = given[option].module_path
    given.setdefault("description", inspect.getdoc(task.func) or "")
    return {"name": task.module_path, "queue": task.queue_name, "priority": int(task.priority), **given}


def retry_of(name: str, attempts: object) -> AttemptsRetry:
    """Return the retry of `max_attempts=`, which counts the first call too."""
    if attempts is None:
        return AttemptsRetry(None)
    if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
        raise InvalidOptions(f"task {name}: max_attempts={attempts!r}: a whole number from 1")
    return AttemptsRetry(attempts - 1)
