"""`rota runs`: list, show, retry, cancel, pause and resume runs."""

import re
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import App, Parameter

from rota.cli.flows.find import find_flow, opened_app
from rota.cli.options.names import check_known_somewhere
from rota.cli.options.parameters import LOOK, Flag, More, OnlyTask, Shared
from rota.cli.options.target import Target
from rota.cli.options.times import read_instant, seconds_of
from rota.cli.options.user import who
from rota.cli.render.show import Column, Show
from rota.cli.render.text import plural
from rota.cli.runs.view import run_columns, run_page
from rota.cli.schedules.find import find_schedule
from rota.client.client import Client
from rota.client.handle import RunHandle
from rota.domain.flow import group_of
from rota.domain.run import State
from rota.errors import InvalidOptions, RotaError
from rota.schedules.schedules import Schedules
from rota.store import Command, Page, RunQuery
from rota.views.runs import find_run, find_runs, matching, next_runs, run_view

MOST = 1000

RunId = Annotated[str, Parameter(help="The run's id, or its first or last 6 or more characters.")]
Note = Annotated[str | None, Parameter(help="Why; kept with the run.")]

runs = App(name="runs", help="Look at runs; retry, cancel, pause and resume them.", group=LOOK)


@runs.command
def ls(
    *,
    state: Annotated[tuple[State, ...], Flag, Parameter(help="Only in this state; may be repeated.")] = (),
    task: OnlyTask = None,
    key: Annotated[str | None, Parameter(help="Only about this key.")] = None,
    group: Annotated[str | None, Parameter(help="Only of this group, such as race_day@2026-11-15.")] = None,
    flow: Annotated[str | None, Parameter(help="Only of this flow, in its period of now.")] = None,
    period: Annotated[str | None, Parameter(help="Of the flow, in this period.")] = None,
    schedule: Annotated[str | None, Parameter(help="Only those that this schedule made.")] = None,
    since: Annotated[
        str | None, Parameter(help="Only made since: 90s, 5m, 2h or 1d ago, or an instant as 2026-11-15T09:00Z.")
    ] = None,
    following: Annotated[
        int | None, Parameter(name="--next", help="Instead, so many runs that workers claim next, in that order.")
    ] = None,
    limit: Annotated[int, Parameter(help="At most so many, newest first.")] = 20,
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
        if state or key or group or flow or period or schedule or since or cursor:
            raise InvalidOptions("--next lists what is queued, of all tasks or one: give it with --task alone")
        page = target.run(_following(target, task, following), code=task is not None)
        show.records([run_view(run) for run in page.runs], run_columns(page), "Nothing waits that could start.")
        return
    if flow is not None or period is not None:
        group = target.run(_group(target, group, flow, period), code=True)
    query = RunQuery(state=state, task=task, key=key, group=group, limit=limit, cursor=cursor)
    page, more = target.run(_page(target, query, schedule, since), code=task is not None)
    show.records([run_view(run) for run in page.runs], run_columns(page), "No runs.")
    if page.cursor:
        show.note(f"more: --cursor {page.cursor}")
    elif more:
        show.note(f"more: a --limit higher than {limit} shows them")


@runs.command(name="show")
def show_run(id: RunId, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Show everything about one run."""

    async def read() -> Page:
        async with target.client() as client:
            return await client.runs(RunQuery(ids=[await find_run(client, id)]))

    page = target.run(read())
    run = page.runs[0]
    show.document(run_view(run), lambda: run_page(run, page.now))


@runs.command
def retry(id: RunId, /, *ids: More, target: Shared[Target], show: Shared[Show]) -> None:
    """Retry ended runs, each as a new run. Repeating the command makes no second one."""

    async def put() -> list[dict[str, object]]:
        async with target.client() as client:
            old = await find_runs(client, (id, *ids))
            return [{"id": (await RunHandle(client, i).retry()).id, "retry_of": i} for i in old]

    show.records(target.run(put()), [Column("id", whole=True), Column("retry_of", title="retry of", whole=True)])


@runs.command
def cancel(id: RunId, /, *ids: More, note: Note = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Cancel runs: queued ones end at once, running ones are asked to stop."""
    _control(Command.CANCEL, (id, *ids), note, target, show, "had ended before; what has ended stays as it is")


@runs.command
def pause(id: RunId, /, *ids: More, note: Note = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Hold runs: queued ones at once; running ones are stopped and go on from their checkpoint."""
    _control(Command.PAUSE, (id, *ids), note, target, show, "had ended or been paused before")


@runs.command
def resume(id: RunId, /, *ids: More, note: Note = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Let paused runs go on."""
    _control(Command.RESUME, (id, *ids), note, target, show, "could not be resumed: only what is paused can be")


def _control(command: Command, given: tuple[str, ...], note: str | None, target: Target, show: Show, late: str) -> None:
    """Show for each run whether the command changed it; raise if one command changed nothing."""

    async def control() -> list[dict[str, object]]:
        async with target.client() as client:
            found = await find_runs(client, given)
            heard = (await client.control(command, found, note, who())).items
            states = {run.id: run.state.value for run in (await client.runs(RunQuery(ids=found))).runs}
            return [{"id": i, "asked": bool(yes), "state": states.get(i)} for i, yes in zip(found, heard, strict=True)]

    answers = target.run(control())
    show.records(answers, [Column("id", whole=True), Column("asked"), Column("state")])
    missed = sum(not answer["asked"] for answer in answers)
    if missed:
        raise RotaError(f"{plural(missed, 'run')} {late}")


async def _group(target: Target, group: str | None, flow: str | None, period: str | None) -> str:
    """Resolve --flow and --period to a group. Without --period the flow's code names the period: -A is needed."""
    if flow is None or group is not None:
        raise InvalidOptions("--period is about a flow, and --flow instead of --group: say --flow FLOW --period PERIOD")
    if target.reference is None:
        if period is None:
            raise InvalidOptions(
                f"which --period of {flow}? Without its code (-A) nothing says which is the one of now"
            )
        return group_of(flow, period)
    async with opened_app(target) as (app, _):
        return group_of(flow, await find_flow(app, flow).period(period))


async def _page(target: Target, query: RunQuery, schedule: str | None, since: str | None) -> tuple[Page, bool]:
    """Return one page, and whether there are more runs; the second value is for lists without a cursor."""
    async with target.client() as client:
        if schedule is None and since is None:
            page, more = await client.runs(query), False
        else:
            begin = None if since is None else await _begin(client, since, target)
            page, more = await matching(client, query, schedule, begin)
        if not page.runs and query.task is not None:
            await check_known_somewhere(list(query.tasks), client, target)
        if not page.runs and schedule is not None:
            await find_schedule(Schedules(lambda: client, "UTC"), schedule)
        return page, more


async def _following(target: Target, task: str | None, count: int) -> Page:
    async with target.client() as client:
        page = await next_runs(client, task, count)
        if not page.runs and task is not None:
            await check_known_somewhere([task], client, target)
        return page


async def _begin(client: Client, since: str, target: Target) -> float:
    """Read --since: `2h` means 2 hours ago by the store's clock; an instant has the default time zone."""
    if re.fullmatch(r"[\d.]+\s*[a-z]*", since):
        return (await client.depths()).now - (seconds_of(since, "--since") or 0.0)
    return read_instant(since, "--since", ZoneInfo(target.tz())).timestamp()
