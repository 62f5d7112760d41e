"""`rota runs`: what happened, what waits, and doing it again."""

import asyncio
from typing import Annotated

from cyclopts import App, Parameter

from rota.cli.apps import Target
from rota.cli.flow_facts import find_flow, opened_app
from rota.cli.groups import LOOK, Flag, More, Shared
from rota.cli.ids import find, find_all
from rota.cli.records import run_record
from rota.cli.run_view import run_columns, run_page
from rota.cli.show import Column, Show
from rota.cli.text import plural
from rota.cli.who import who
from rota.domain.flow import group_of
from rota.domain.run import State
from rota.errors import InvalidOptions, RotaError
from rota.handle import RunHandle
from rota.store import Page, RunQuery, Wish

MOST = 1000

RunId = Annotated[str, Parameter(help="The run's id, or its first or last 6 or more characters.")]
Note = Annotated[str | None, Parameter(help="Why; kept with the run.")]

runs = App(name="runs", help="Look at runs; retry, cancel, pause and resume them.", group=LOOK)


@runs.command
def ls(
    *,
    state: Annotated[tuple[State, ...], Flag, Parameter(help="Only in this state; may be repeated.")] = (),
    task: Annotated[str | None, Parameter(help="Only of this task.")] = None,
    key: Annotated[str | None, Parameter(help="Only about this key.")] = None,
    group: Annotated[str | None, Parameter(help="Only of this group, such as race_day@2026-11-15.")] = None,
    flow: Annotated[str | None, Parameter(help="Only of this flow, in its period of now.")] = None,
    period: Annotated[str | None, Parameter(help="Of the flow, in this period.")] = None,
    limit: Annotated[int, Parameter(help="At most so many, newest first.")] = 20,
    cursor: Annotated[str | None, Parameter(help="Go on where an earlier list ended.")] = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """List runs, newest first."""
    if not 1 <= limit <= MOST:
        raise InvalidOptions(f"--limit {limit}: from 1 to {MOST}")
    if flow is not None or period is not None:
        group = asyncio.run(_group(target, group, flow, period))
    query = RunQuery(states=state, task=task, key=key, group=group, limit=limit, cursor=cursor)
    page = asyncio.run(_page(target, query))
    show.records([run_record(run) for run in page.runs], run_columns(page), "No runs.")
    if page.cursor:
        show.note(f"more: --cursor {page.cursor}")


@runs.command(name="show")
def show_run(id: RunId, /, *, target: Shared[Target], show: Shared[Show]) -> None:
    """Show everything about one run."""

    async def read() -> Page:
        async with target.client() as client:
            return await (await client.store()).runs(RunQuery(ids=[await find(client, id)]))

    page = asyncio.run(read())
    run = page.runs[0]
    show.document(run_record(run), lambda: run_page(run, page.now))


@runs.command
def retry(id: RunId, /, *ids: More, target: Shared[Target], show: Shared[Show]) -> None:
    """Do ended runs again, each as a new run; twice gives the same new run."""

    async def put() -> list[dict[str, object]]:
        async with target.client() as client:
            old = await find_all(client, (id, *ids))
            return [{"id": (await RunHandle(client, i).retry()).id, "retry_of": i} for i in old]

    show.records(asyncio.run(put()), [Column("id", whole=True), Column("retry_of", title="retry of", whole=True)])


@runs.command
def cancel(id: RunId, /, *ids: More, note: Note = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Cancel runs: queued ones end at once, running ones are told to."""
    _ask(Wish.CANCEL, (id, *ids), note, target, show, "had ended before; what has ended stays as it is")


@runs.command
def pause(id: RunId, /, *ids: More, note: Note = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Hold runs: queued ones at once; running ones are stopped and go on from their checkpoint."""
    _ask(Wish.PAUSE, (id, *ids), note, target, show, "had ended or been paused before")


@runs.command
def resume(id: RunId, /, *ids: More, note: Note = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Let paused runs go on."""
    _ask(Wish.RESUME, (id, *ids), note, target, show, "could not be resumed: only what is paused can be")


def _ask(wish: Wish, given: tuple[str, ...], note: str | None, target: Target, show: Show, late: str) -> None:
    """Says for each run whether the wish changed anything; exits with 1 if one came too late."""

    async def ask() -> list[dict[str, object]]:
        async with target.client() as client:
            found = await find_all(client, given)
            store = await client.store()
            heard = (await store.ask(wish, found, note, who())).items
            states = {run.id: run.state.value for run in (await store.runs(RunQuery(ids=found))).runs}
            return [{"id": i, "asked": bool(yes), "state": states.get(i)} for i, yes in zip(found, heard, strict=True)]

    answers = asyncio.run(ask())
    show.records(answers, [Column("id", whole=True), Column("asked"), Column("state")])
    missed = sum(not answer["asked"] for answer in answers)
    if missed:
        raise RotaError(f"{plural(missed, 'run')} {late}")


async def _group(target: Target, group: str | None, flow: str | None, period: str | None) -> str:
    """The group of a flow's period; its code says which is the one of now, where it is there."""
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


async def _page(target: Target, query: RunQuery) -> Page:
    async with target.client() as client:
        store = await client.store()
        return await store.runs(query)
