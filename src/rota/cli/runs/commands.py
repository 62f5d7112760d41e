"""`rota runs`: list and show runs; `acting` has what changes them."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import App, Parameter
from msgspec.structs import replace

from rota.cli.options.names import check_known_somewhere
from rota.cli.options.parameters import LOOK, Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.cli.runs import acting
from rota.cli.runs.filters import EVERY, Filter
from rota.cli.runs.view import run_columns, run_page
from rota.cli.schedules.find import find_schedule
from rota.client.fleet import is_inner
from rota.domain.run import Run
from rota.domain.timing import shown
from rota.errors import InvalidOptions
from rota.schedules.schedules import Schedules
from rota.store import Page, RunQuery
from rota.store.paging import with_fans
from rota.views.runs import find_run, logs_view, next_runs, run_view
from rota.views.values import Record

MOST = 1000

RunId = Annotated[str, Parameter(help="The run's id, or its first or last 6 or more characters.")]

runs = App(name="runs", help="Look at runs; retry, cancel, pause, resume, move, change and delete them.", group=LOOK)


@runs.command
def ls(
    *,
    filter: Filter = EVERY,
    following: Annotated[
        int | None, Parameter(name="--next", help="Instead, so many runs that workers claim next, in that order.")
    ] = None,
    limit: Annotated[int, Parameter(help="At most so many.")] = 20,
    cursor: Annotated[str | None, Parameter(help="Go on where an earlier list ended.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """List runs, newest first.

    With --next, those that workers claim next: what is due, by priority and then by how long it is due, then what falls
    due first. Runs that wait for others, for a limit, or for a paused or disabled task are left out.
    """
    for option, count in (("--limit", limit), ("--next", 1 if following is None else following)):
        if not 1 <= count <= MOST:
            raise InvalidOptions(f"{option} {count}: from 1 to {MOST}")
    if following is not None:
        if cursor or set(filter.given()) - {"task"} or len(filter.task) > 1:
            raise InvalidOptions("--next lists what is queued, of all tasks or one: give it with --task alone")
        task = filter.task[0] if filter.task else None
        page = target.run(_following(target, task, following), code=task is not None)
        show.records([run_view(run) for run in page.runs], run_columns(page), "Nothing waits that could start.")
        return
    page = target.run(_page(target, filter, limit, cursor), code=filter.needs_code)
    show.records([run_view(run) for run in page.runs], run_columns(page), "No runs.")
    if page.searched_back_to is not None:
        show.note(f"searched back to {shown(page.searched_back_to)}")
    if page.cursor:
        show.note(f"more: --cursor {page.cursor}")


@runs.command(name="show")
def show_run(id: RunId, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Show everything about one run."""

    async def read() -> Page:
        async with target.client() as client:
            return await with_fans(client, await client.runs(RunQuery(ids=[await find_run(client, id)])))

    page = target.run(read())
    run = page.runs[0]
    show.document(run_view(run), lambda: run_page(run, page.now))


@runs.command(name="logs")
def show_logs(
    id: RunId,
    /,
    *,
    last: Annotated[bool, Flag, Parameter(help="Only the last attempt.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show what a run has logged: the last 64 KiB of each attempt, for a task with logs=True."""

    async def read() -> Run:
        async with target.client() as client:
            return await client.run(await find_run(client, id))

    write_logs(show, logs_view(target.run(read())), last)


def write_logs(show: Show, found: Sequence[Record], last: bool) -> None:
    logs = list(found[-1:] if last else found)
    if show.json:
        show.value(logs)
        return
    if not logs:
        show.note("no log: only attempts of a task with logs=True that have ended have one")
    for log in logs:
        if len(found) > 1 and not last:
            show.line(f"-- attempt {log['fence']}: {log['outcome']}, {log['ended_at']}")
        show.line(str(log["text"]).rstrip("\n"))


for command in (acting.retry, acting.cancel, acting.pause, acting.resume, acting.reschedule, acting.delete):
    runs.command(command)
runs.command(acting.update)


async def _page(target: Target, filter: Filter, limit: int, cursor: str | None) -> Page:
    """Return one page. If it is empty, check that the task and the schedule exist."""
    async with target.client() as client:
        query = await filter.query(client, target)
        page = await with_fans(client, await client.runs(replace(query, limit=limit, cursor=cursor)))
        if not query.tasks:
            page = replace(page, runs=[run for run in page.runs if not is_inner(run.task)])
        if not page.runs and query.tasks:
            await check_known_somewhere(query.tasks, client, target)
        if not page.runs and query.schedule is not None:
            await find_schedule(Schedules(lambda: client, "UTC"), query.schedule)
        return page


async def _following(target: Target, task: str | None, count: int) -> Page:
    async with target.client() as client:
        page = await next_runs(client, task, count)
        if not page.runs and task is not None:
            await check_known_somewhere([task], client, target)
        return page
