"""`rota workers`: who is there to do the work."""

from collections import Counter
from typing import Annotated, cast

from cyclopts import Parameter
from rich.text import Text

from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Column, Record, Show
from rota.cli.render.text import coarse, iso, one_line
from rota.client.fleet import all_running, is_alive, stopping
from rota.domain.run import Run
from rota.store import Reply, WorkerSeen

SHORT = 8

STYLE = {"idle": "green", "busy": "bold yellow", "stopping": "yellow", "silent": "bold red", "stopped": "bright_black"}


def workers(
    *,
    every: Annotated[bool, Flag, Parameter(name="--all", help="Those that have stopped, too.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """List the workers that the store has seen in the last hour.

    One that has claimed nothing for its lease, or for 30 seconds, is silent: dead, cut off, or with its event loop
    blocked. One that has been told to stop claims no more, and is stopping while it still holds runs.
    """
    seen, running = target.run(_seen(target))
    held = Counter(run.worker for run in running)
    leaving = {worker.name for worker in stopping(seen.items, running, seen.now)}
    records = [
        _record(worker, worker.name in leaving, held[worker.name], seen.now)
        for worker in sorted(seen.items, key=lambda w: (-w.seen_at, w.name))
    ]
    chosen = [record for record in records if every or record["standing"] != "stopped"]
    show.records(chosen, _columns(), "No workers; start one with rota worker.")


def standing(worker: WorkerSeen, leaving: bool, held: int, now: float) -> str:
    """One that was killed while it was stopping is silent: its runs wait for another worker."""
    if leaving:
        return "stopping"
    if not worker.tasks and not held:
        return "stopped"
    if not is_alive(worker, now):
        return "silent"
    return "busy" if held else "idle"


async def _seen(target: Target) -> tuple[Reply[WorkerSeen], list[Run]]:
    async with target.client() as client:
        store = await client.store()
        return await store.rows(WorkerSeen), await all_running(store)


def _record(worker: WorkerSeen, leaving: bool, held: int, now: float) -> dict[str, object]:
    report = worker.report
    return {
        "name": worker.name,
        "standing": standing(worker, leaving, held, now),
        "host": report.host,
        "pid": report.pid,
        "seats": report.seats,
        "held": held,
        "overdue": report.overdue,
        "idle": worker.idle,
        "tasks": [*worker.tasks],
        "seen_at": iso(worker.seen_at),
        "silent_for": round(max(0.0, now - worker.seen_at), 3),
        "version": report.version,
    }


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
