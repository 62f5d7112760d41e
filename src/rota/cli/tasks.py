"""`rota tasks`: what the app can do, and how much of it waits."""

import asyncio
import inspect
from typing import Any

from rich.text import Text

from rota.cli.apps import Target
from rota.cli.groups import Shared
from rota.cli.show import Column, Record, Show
from rota.cli.text import one_line, span
from rota.client import Client
from rota.store import Backend, Depth
from rota.task import Task

COLUMNS = [
    Column("task", lambda r: _name(r)),
    Column("parameters", elastic=True),
    Column("executor", from_width=100),
    Column("retries", right=True, from_width=100),
    Column("timeout", lambda r: _timeout(r.get("timeout")), right=True, from_width=100),
    Column("queued", right=True),
    Column("running", right=True),
    Column("defined", piped=True),
    Column("description", elastic=True, from_width=100),
]


def tasks(*, target: Shared[Target], show: Shared[Show]) -> None:
    """List the app's tasks, and tasks that only the store knows."""
    app = target.app()
    depths = {depth.task: depth for depth in asyncio.run(_depths(app.backend))}
    strangers = [name for name in depths if name not in app.tasks]
    records = [
        _record(name, app.tasks.get(name), depths.get(name) or Depth(name, 0, 0)) for name in (*app.tasks, *strangers)
    ]
    show.records(records, COLUMNS, "The app has no tasks yet; define one with @app.task.")
    if strangers and show.terminal and not show.json:
        show.line("\n? has runs in the store, but the app does not define it")


def _record(name: str, task: Task[..., ..., Any, Any] | None, depth: Depth) -> dict[str, object]:
    return {
        "task": name,
        "parameters": task and _parameters(task.signature.parameters),
        "executor": task and task.executor,
        "retries": task and task.retry.limit,
        "timeout": task and task.policy.timeout,
        "queued": depth.queued,
        "running": depth.running,
        "defined": task is not None,
        "description": task and one_line(task.description.partition("\n")[0]),
    }


def _parameters(signature: inspect.Signature) -> str:
    """As in the code, without the parentheses and the result."""
    return one_line(str(signature.replace(return_annotation=inspect.Signature.empty))[1:-1])


def _name(record: Record) -> Text:
    name = one_line(str(record["task"]))
    return Text(name, style="bold") if record["defined"] else Text(f"{name} ?", style="yellow")


def _timeout(seconds: object) -> str:
    return span(seconds) if isinstance(seconds, float | int) else ""


async def _depths(backend: Backend) -> list[Depth]:
    client = Client(backend)
    try:
        return (await (await client.store()).depths()).items
    finally:
        await client.close()
