"""Asserts about submitted runs, for tests of code that submits."""

from typing import Any

import msgspec

from rota.app.app import Rota
from rota.app.core import core_of
from rota.domain.arguments import encode_result
from rota.domain.run import Run
from rota.errors import InvalidArguments
from rota.store import RunQuery
from rota.task import Task, definition_of

PAGE = 1000
LISTED = 20

AnyTask = Task[..., ..., Any, Any]


async def assert_submitted(app: Rota, task: AnyTask | str, *args: Any, **kwargs: Any) -> Run:
    """Assert that the store has a run of `task`, in any state: with these arguments, or with any if none are given.

    Returns the newest such run. Arguments are compared as the handler gets them, with defaults filled in.
    """
    runs = await _runs(app)
    for run in runs:
        if _fits(app, run, task, args, kwargs):
            return run
    raise AssertionError(f"{_wanted(task, args, kwargs)} was not submitted; {_instead(app, runs, task)}")


async def assert_not_submitted(app: Rota, task: AnyTask | str, *args: Any, **kwargs: Any) -> None:
    """Assert that the store has no run of `task` with these arguments, or no run at all if none are given."""
    found = [run for run in await _runs(app) if _fits(app, run, task, args, kwargs)]
    if found:
        raise AssertionError(f"{_wanted(task, args, kwargs)} was submitted:\n{_listed(app, found)}")


async def _runs(app: Rota) -> list[Run]:
    """Return all runs, newest first."""
    async with app.client() as client:
        return [run async for run in client.all_runs(RunQuery(limit=PAGE))]


def _fits(app: Rota, run: Run, task: AnyTask | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    known = core_of(app).registry.find(task) if isinstance(task, str) else task
    names = (task,) if isinstance(task, str) else (task.name, *task.aliases)
    if run.task not in names:
        return False
    if not args and not kwargs:
        return True
    if known is None:
        if args:
            raise InvalidArguments(f"no task {task} is defined here, so its arguments need names")
        return bool(msgspec.json.decode(run.args) == msgspec.json.decode(encode_result(kwargs)))
    return _arguments(known, run.args) == _arguments(known, definition_of(known).encode(args, kwargs))


def _arguments(task: AnyTask, encoded: bytes) -> dict[str, object]:
    signature = definition_of(task).signature
    args, kwargs = signature.decode(encoded)
    return signature.all_arguments(args, kwargs)


def _wanted(task: AnyTask | str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    name = task if isinstance(task, str) else task.name
    given = [*(repr(value) for value in args), *(f"{key}={value!r}" for key, value in kwargs.items())]
    return f"{name}({', '.join(given)})" if given else name


def _instead(app: Rota, runs: list[Run], task: AnyTask | str) -> str:
    name = task if isinstance(task, str) else task.name
    same = [run for run in runs if run.task == name]
    if same:
        return f"of this task there is:\n{_listed(app, same)}"
    if runs:
        return f"there is only:\n{_listed(app, runs)}"
    return "the store holds no run at all"


def _listed(app: Rota, runs: list[Run]) -> str:
    """Return the runs as text, the oldest first, in the form of calls."""
    lines = [f"  {_written(app, run)}  ({run.state})" for run in reversed(runs[:LISTED])]
    if len(runs) > LISTED:
        lines.insert(0, f"  … {len(runs) - LISTED} earlier ones")
    return "\n".join(lines)


def _written(app: Rota, run: Run) -> str:
    task = core_of(app).registry.find(run.task)
    try:
        named = msgspec.json.decode(run.args) if task is None else _arguments(task, run.args)
    except (TypeError, ValueError):
        return f"{run.task}({run.args.decode(errors='replace')})"
    return f"{run.task}({', '.join(f'{key}={value!r}' for key, value in named.items())})"
