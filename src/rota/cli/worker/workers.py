"""`rota workers`: list the workers, and direct one of them."""

from typing import Annotated, cast

from cyclopts import App, Parameter
from rich.text import Text

from rota.cli.options.parameters import LOOK, Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Record, Show
from rota.cli.render.text import coarse, one_line
from rota.client.workers import Workers
from rota.errors import InvalidOptions
from rota.store import MOST_SEATS, RowQuery, WorkerSeen
from rota.views.values import record
from rota.views.workers import WorkerView, worker_views

SHORT = 8

workers = App(name="workers", help="List the workers; let one be quiet, stop, or have other seats.", group=LOOK)
WorkerName = Annotated[str, Parameter(help="The worker, or the first letters of its name.")]

STYLE = {
    "idle": "green",
    "busy": "bold yellow",
    "quiet": "cyan",
    "stopping": "yellow",
    "silent": "bold red",
    "stopped": "bright_black",
}


@workers.default
def ls(
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


@workers.command
def quiet(name: WorkerName, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Let a worker start no more runs; it goes on with those that it has."""
    _direct(target, show, name, quiet=True)


@workers.command
def resume(name: WorkerName, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Let a quiet worker start runs again."""
    _direct(target, show, name, quiet=False)


@workers.command
def stop(name: WorkerName, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Stop a worker as a signal does: its running handlers have its grace to end.

    A process of rota worker --processes is not replaced. A service manager may start the whole command again.
    """
    _direct(target, show, name, stop=True)


@workers.command
def seats(
    name: WorkerName,
    seats: Annotated[int, Parameter(help="Runs at the same time; 0: as many as it was started with.")],
    /,
    *,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Let a worker have other seats; runs that it has go on."""
    if not 0 <= seats <= MOST_SEATS:
        raise InvalidOptions(f"seats {seats}: a whole number up to {MOST_SEATS:,}, or 0 for the worker's own")
    _direct(target, show, name, seats=seats)


def _direct(
    target: Target, show: Show, name: str, seats: int | None = None, quiet: bool | None = None, stop: bool = False
) -> None:
    """Show the orders of the worker as they are now. A command that changes nothing is no error."""

    async def direct() -> Record:
        async with target.client() as client:
            full = await Workers(lambda: client).find(name)
            (changed,) = (await client.direct([full], seats, quiet, stop)).items
            (seen,) = (await client.rows(WorkerSeen, RowQuery(names=[full]))).items
            orders = seen.orders
            wanted = {"seats": orders.seats or None, "quiet": orders.quiet, "stop": orders.stop}
            return {"worker": full, "changed": changed, **wanted}

    columns = [Column("worker", whole=True), *map(Column, ("changed", "seats", "quiet", "stop"))]
    show.records([target.run(direct())], columns)


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
        Column("queues", lambda r: ", ".join(_queues(r)), lambda r: ",".join(_queues(r)), sparse=True),
        Column("seen_at", lambda r: f"{_silence(r)} ago", title="seen"),
        Column("silent_for", piped=True),
        Column("version", from_width=100),
        Column("quiet", piped=True),
    ]


def _tasks(record: Record) -> list[str]:
    return [one_line(task) for task in cast("list[str]", record["tasks"])]


def _queues(record: Record) -> list[str]:
    return [one_line(queue) for queue in cast("list[str]", record["queues"])]


def _overdue(record: Record) -> Text:
    return Text(str(record["overdue"]), style="bold red" if record["overdue"] else "")


def _silence(record: Record) -> str:
    silence = record["silent_for"]
    return coarse(silence) if isinstance(silence, float) else ""
