"""`rota flows`: the state of periods and steps, why a step waits, and start, rerun, reset and backfill."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from cyclopts import App, Parameter

from rota.cli.flows.find import FlowName, PeriodName, StepName, find_flow, find_step, opened_app
from rota.cli.flows.view import Grid, flow_columns, healed_words, period_page, step_columns
from rota.cli.options.parameters import LOOK, Flag, Shared, Yes
from rota.cli.options.target import Target, check_shared
from rota.cli.options.user import confirm
from rota.cli.render.show import Column, Show
from rota.cli.render.text import plural
from rota.cli.runs.why import show_why
from rota.domain.decision import Decision, Reason
from rota.domain.period import Period
from rota.errors import InvalidOptions
from rota.flow import FlowStatus
from rota.flow.flow import BACKFILL_CAP
from rota.views.flows import (
    FlowPeriod,
    backfill_record,
    flow_detail,
    flow_period,
    flow_view,
    last_periods,
    start_records,
    step_records,
)
from rota.views.values import record
from rota.why import Why
from rota.why.steps import why_step

SHOWN, MOST = 7, 60
UNASKED = 20
"""Periods that a backfill starts without asking."""

flows = App(name="flows", help="Look at flows; start, rerun, reset and backfill their periods.", group=LOOK)


@flows.command
def ls(*, target: Shared[Target], show: Shared[Show]) -> None:
    """List the app's flows, each with the state of its current period."""

    async def read() -> list[FlowPeriod]:
        async with opened_app(target) as (app, client):
            return [await flow_period(client, flow, app.settings.tz) for flow in app.flows.values()]

    found = target.run(read(), code=True)
    show.records(
        [record(flow_view(each)) for each in found], flow_columns(found), "No flows; define one with app.flow(…)."
    )


@flows.command(name="show")
def show_flow(
    flow: FlowName,
    /,
    *,
    period: Annotated[str | None, Parameter(help="Only this one, in full.")] = None,
    last: Annotated[int, Parameter(help="So many periods, up to the one of now.")] = SHOWN,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Show a flow as a grid of steps and periods; with --period, one period in full."""
    if not 1 <= last <= MOST:
        raise InvalidOptions(f"--last {last}: from 1 to {MOST}")
    found, statuses = target.run(_read(target, flow, period, last), code=True)
    if show.json:
        show.value(flow_detail(found, statuses))
        return
    records = step_records(statuses)
    show.records(
        records,
        step_columns(),
        render=lambda: Grid(found, statuses) if period is None else period_page(found, records),
    )


async def _read(target: Target, name: str, period: str | None, last: int) -> tuple[FlowPeriod, list[FlowStatus]]:
    async with opened_app(target) as (app, client):
        flow = find_flow(app, name)
        found = await flow_period(client, flow, app.settings.tz, period)
        if period is not None:
            return found, [found.status]
        names = await last_periods(client, flow, last)
        return found, [found.status if each == found.status.period else await flow.status(each) for each in names]


@flows.command(name="why")
def why_flow(
    flow: FlowName,
    step: StepName,
    /,
    *,
    period: PeriodName = None,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Say in words why a step is not done: what it waits for, what blocks that, since when, and what to do."""

    async def read() -> tuple[FlowPeriod, Why]:
        async with opened_app(target) as (app, client):
            chosen = find_flow(app, flow)
            name = find_step(chosen, step)
            found = await flow_period(client, chosen, app.settings.tz, period)
            return found, await why_step(client, found.status, name)

    found, answer = target.run(read(), code=True)
    show_why(show, answer)
    if not show.json and found.status.steps[step].state not in ("done", "skipped", "running"):
        show.line(f"- recheck: {healed_words(found)}")


@flows.command
def start(flow: FlowName, /, *, period: PeriodName = None, target: Shared[Target], show: Shared[Show]) -> None:
    """Start a period: put all its steps. Steps that are done or under way stay as they are; failed ones start again."""

    async def put() -> tuple[str, Mapping[str, Decision]]:
        async with opened_app(target) as (app, _):
            chosen = find_flow(app, flow)
            check_shared(app.backend)
            name = await chosen.period(period)
            return name, await chosen.start(name)

    _show_decisions(show, flow, *target.run(put(), code=True))


@flows.command
def rerun(
    flow: FlowName,
    step: StepName,
    /,
    *,
    period: PeriodName = None,
    only: Annotated[bool, Flag, Parameter(help="This step alone, not those that follow from it.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Do a step again, and all that follow from it."""

    async def put() -> tuple[str, Mapping[str, Decision]]:
        async with opened_app(target) as (app, _):
            chosen = find_flow(app, flow)
            check_shared(app.backend)
            name = await chosen.period(period)
            return name, await chosen.rerun(find_step(chosen, step), name, downstream=not only)

    _show_decisions(show, flow, *target.run(put(), code=True))


@flows.command
def reset(
    flow: FlowName,
    step: Annotated[str | None, Parameter(help="Only this step.")] = None,
    /,
    *,
    period: PeriodName = None,
    downstream: Annotated[bool, Flag, Parameter(help="And all that follow from the step.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Forget that steps are done: the next recheck or start of the period does them again."""

    async def clear() -> tuple[FlowPeriod, Sequence[str]]:
        async with opened_app(target) as (app, client):
            chosen = find_flow(app, flow)
            check_shared(app.backend)
            if downstream and step is None:
                raise InvalidOptions("--downstream: of which step? Without one, all are reset anyway")
            name = await chosen.period(period)
            done = await chosen.reset(name, None if step is None else find_step(chosen, step), downstream)
            return await flow_period(client, chosen, app.settings.tz, name), done

    found, done = target.run(clear(), code=True)
    if show.json:
        show.value({"flow": flow, "period": found.status.period, "reset": [*done]})
    elif done:
        show.line(f"{flow} {found.status.period}: {', '.join(done)} reset; {healed_words(found)}")
    else:
        show.line(f"{flow} {found.status.period}: nothing was reset, for nothing of it was done")


@flows.command
def backfill(
    flow: FlowName,
    first: Annotated[str, Parameter(help="The first period, such as 2026-11-01.")],
    last: Annotated[str, Parameter(help="The last.")],
    /,
    *,
    yes: Yes = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Start every period from one to another; steps that are done stay as they are. More than 20 periods need a yes."""

    async def put() -> Mapping[str, Mapping[str, Decision]]:
        async with opened_app(target) as (app, _):
            chosen = find_flow(app, flow)
            check_shared(app.backend)
            begin, end = await chosen.period(first), await chosen.period(last)
            if begin > end:
                raise InvalidOptions(f"{first} comes after {last}")
            count = _between(chosen.once, begin, end) if isinstance(chosen.once, Period) and not yes else 0
            if count > UNASKED:
                periods = f"{plural(count, 'period')} of {flow}"
                await confirm(f"Start {periods}?", "nothing was started", f"this starts {periods}")
            return await chosen.backfill(begin, end)

    records = [backfill_record(flow, name, answers) for name, answers in target.run(put(), code=True).items()]
    show.records(records, [Column("period"), Column("put"), Column("joined"), Column("done", title="already done")])


def _between(once: Period, first: str, last: str) -> int:
    try:
        return len(once.between(first, last, BACKFILL_CAP))
    except ValueError as error:
        raise InvalidOptions(str(error)) from None


WORDS = {Reason.ACCEPTED: "put", Reason.JOINED: "waits already"}


def _show_decisions(show: Show, flow: str, period: str, answers: Mapping[str, Decision]) -> None:
    records = start_records(flow, period, answers)
    columns = [
        Column("period", piped=True),
        Column("step"),
        Column("reason", lambda r: _words(str(r["reason"])), title="what became of it"),
        Column("run", whole=True),
    ]
    show.records(records, columns, f"{flow} has no steps yet; add them with flow.step(task).")


def _words(reason: str) -> str:
    return WORDS.get(Reason(reason), reason.replace("_", " "))
