"""`rota workers`: list the workers."""

from typing import Annotated, cast

from cyclopts import Parameter
from rich.text import Text

from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Record, Show
from rota.cli.render.text import coarse, one_line
from rota.views.values import record
from rota.views.workers import WorkerView, worker_views

SHORT = 8

STYLE = {"idle": "green", "busy": "bold yellow", "stopping": "yellow", "silent": "bold red", "stopped": "bright_black"}


def workers(
    *,
    every: Annotated[bool, Flag, Parameter(name="--all", help="Those that have stopped, too.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """List the workers that the store has seen in the last hour.

    A worker that has claimed nothing for its lease, or for 30 seconds, is silent: dead, cut off, or with a blocked
    event loop. A worker that was asked to stop claims no more, and is stopping while it still has runs.
    """
    views = target.run(_read(target))
    chosen = [view for view in views if every or view.standing != "stopped"]
    show.records([record(view) for view in chosen], _columns(), "No workers; start one with rota worker.")


async def _read(target: Target) -> list[WorkerView]:
    async with target.client() as client:
        return await worker_views(client)


def _columns() -> list[Column]:
    return [
        Column("name", lambda r: one_line(str(r["name"]))[:SHORT]),
        Column("standing", lambda r: Text(str(r["standing"]), style=STYLE[str(r["standing"])])),
        Column("host"),
        Column("pid", right=True),
        Column("seats", right=True),
        Column("held", right=True),
        Column("overdue", _overdue, right=True),
        Column("idle", piped=True),
        Column("tasks", lambda r: ", ".join(_tasks(r)), lambda r: ",".join(_tasks(r)), elastic=True),
        Column("seen_at", lambda r: f"{_silence(r)} ago", title="seen"),
        Column("silent_for", piped=True),
        Column("version", from_width=100),
    ]


def _tasks(record: Record) -> list[str]:
    return [one_line(task) for task in cast("list[str]", record["tasks"])]


def _overdue(record: Record) -> Text:
    return Text(str(record["overdue"]), style="bold red" if record["overdue"] else "")


def _silence(record: Record) -> str:
    silence = record["silent_for"]
    return coarse(silence) if isinstance(silence, float) else ""
