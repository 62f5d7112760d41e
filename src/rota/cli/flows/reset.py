"""`rota reset`: forget that a period was done."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.flows.view import healed_words
from rota.cli.options.names import check_known, known_somewhere
from rota.cli.options.parameters import Flag, Shared
from rota.cli.options.target import Target
from rota.cli.render.show import Show
from rota.cli.render.text import one_line
from rota.client.client import Client
from rota.domain.flow import group_of, key_of
from rota.domain.once import check_period
from rota.domain.period import Period
from rota.errors import InvalidOptions
from rota.flow import Flow
from rota.store import MarkRow, RowQuery, RunQuery
from rota.views.flows import flow_period

ALL = 10_000_000


class Reset(Struct, frozen=True):
    """The marks that were cleared, and sentences that say what runs the work again."""

    marks: list[MarkRow]
    then: list[str]


def reset(
    name: Annotated[str, Parameter(help="A task that is done once per period, or a flow.")],
    /,
    *,
    period: Annotated[str, Parameter(help="Which, such as 2026-11-15.")],
    downstream: Annotated[bool, Flag, Parameter(help="And all steps that follow from the task in its flows.")] = False,
    target: Shared[Target],
    show: Shared[Show],
) -> None:
    """Forget that a task, or all steps of a flow, were done in a period: they may run again.

    Nothing is started: the next recheck, tick, start or submit does it.
    """
    found = target.run(_reset(target, name, _checked(period), downstream), code=True)
    if show.json:
        show.value({"period": period, "reset": [{"task": row.task, "key": row.key} for row in found.marks]})
        return
    if not found.marks:
        show.line(f"{name} {period}: nothing was reset, for nothing of it was done")
        return
    for row in found.marks:
        show.line(one_line(f"{row.task} {row.key} is reset"))
    for words in found.then:
        show.line(words)


async def _reset(target: Target, name: str, period: str, downstream: bool) -> Reset:
    app = target.app() if target.reference is not None else None
    if downstream and app is None:
        raise InvalidOptions("--downstream: what follows from a step stands in the code; say which app with -A")
    period = period if app is None else core_of(app).registry.formats.read(period)
    async with target.client() as client:
        wanted = await _marks(app, client, target, name, period, downstream)
        edits = [MarkRow(row.task, row.key, None) for row in wanted]
        changed = (await client.mark(edits)).items
        cleared = [row for row, was in zip(wanted, changed, strict=True) if was]
        if app is None:
            return Reset(cleared, [f"the next submit or tick of {name} in {period} runs it again"])
        return Reset(cleared, await _then(app, client, cleared, name, period))


async def _marks(
    app: Rota | None, client: Client, target: Target, name: str, period: str, downstream: bool
) -> list[MarkRow]:
    flows: Mapping[str, Flow] = {} if app is None else app.flows
    if name in flows:
        return list(_of_steps(flows[name], flows[name].steps, _of(flows[name], period)))
    check_known([name], await known_somewhere(client, target), "app or store")
    if (await client.runs(RunQuery(group=group_of(name, period), limit=1))).runs:
        where = "say which app with -A" if app is None else f"{target.reference} does not define it"
        raise InvalidOptions(f"{name} is a flow, and which steps it has stands in its code: {where}")
    rows = (await client.rows(MarkRow, RowQuery(task=name, limit=ALL))).items
    found = {(row.task, row.key): row for row in rows if row.key == period or row.key.endswith(f"@{period}")}
    for flow in flows.values() if downstream else ():
        for step in flow.steps.values():
            if step.spec.task == name and _has(flow, period):
                found |= {(row.task, row.key): row for row in _of_steps(flow, flow.downstream(step), period)}
    return list(found.values())


def _of_steps(flow: Flow, steps: Iterable[str], period: str) -> Iterator[MarkRow]:
    for step in steps:
        yield MarkRow(flow.steps[step].spec.task, key_of(flow.name, step, period), None)


async def _then(app: Rota, client: Client, cleared: list[MarkRow], name: str, period: str) -> list[str]:
    """Return sentences that say what runs the cleared work again: the flow's recheck, a start, or the next submit."""
    sentences: list[str] = []
    async with app.client():
        for flow in app.flows.values():
            keys = {key_of(flow.name, step, period) for step in flow.steps}
            if any(row.key in keys for row in cleared):
                sentences.append(
                    f"{flow.name}: {healed_words(await flow_period(client, flow, app.settings.tz, period))}"
                )
    return sentences or [f"the next submit or tick of {name} in {period} runs it again"]


def _has(flow: Flow, period: str) -> bool:
    """Return whether `period` is a name of one of the flow's periods."""
    try:
        return not isinstance(flow.once, Period) or bool(flow.once.check(period))
    except ValueError:
        return False


def _of(flow: Flow, period: str) -> str:
    try:
        return flow.once.check(period) if isinstance(flow.once, Period) else period
    except ValueError as error:
        raise InvalidOptions(f"flow {flow.name}: {error}") from None


def _checked(period: str) -> str:
    try:
        return check_period(period)
    except ValueError as error:
        raise InvalidOptions(f"--period {error}") from None
