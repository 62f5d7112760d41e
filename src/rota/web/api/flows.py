"""Flows of the app: their periods and steps; start, rerun and reset a period."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.flow import Flow
from rota.views.flows import (
    FlowView,
    StepView,
    flow_detail,
    flow_period,
    flow_view,
    last_periods,
    start_records,
    step_records,
)
from rota.views.shapes import listing, shape_of
from rota.views.values import iso, record
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, NoQuery, Route, Text, get, post, write

MOST = 60
"""Periods that one answer shows."""
PERIOD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "period": {"type": "string"},
        "done": {"type": "boolean"},
        "steps": {"type": "array", "items": shape_of(StepView)},
    },
    "required": ["period", "done", "steps"],
}
FLOW = shape_of(FlowView)
FLOW["properties"] |= {"zone": {"type": "string"}, "periods": {"type": "array", "items": PERIOD}}


class Started(Struct, frozen=True):
    """What the start of a step answered; `run` is its new run, or the run that was there."""

    flow: str
    period: str
    step: str
    reason: str
    run: str


class PeriodsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    last: Annotated[int, Meta(ge=1, le=MOST)] = 30


class StartBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`period`: the current one if none is named."""

    period: Text | None = None
    note: Text | None = None


class RerunBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`following`: also all steps that follow from `step`."""

    step: Annotated[str, Meta(min_length=1, max_length=200)]
    following: bool = True
    note: Text | None = None


class ResetQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`step`: only this step; with `following`, also all steps that follow from it."""

    step: Text | None = None
    following: bool = False
    note: Text | None = None


class Reset(Struct, frozen=True):
    """The steps that were done, and are not any more."""

    flow: str
    period: str
    reset: list[str]


def _flow(call: Call[Any, Any], right: Right = Right.READ) -> Flow:
    name = call.path["name"]
    found = call.app.flows.get(name)
    if found is None or not call.principal.may(Right.READ, name):
        raise Problem(404, "no such flow in the code of this service, or none that this credential may see")
    if not call.principal.may(right, name):
        raise Problem(403, f"{call.principal.name} needs the right {right} for the flow {name}")
    return found


async def flows(call: Call[NoQuery, None]) -> Answer:
    tz = call.app.settings.tz
    seen = [flow for flow in call.app.flows.values() if call.principal.may(Right.READ, flow.name)]
    items = [record(flow_view(await flow_period(call.client, flow, tz))) for flow in seen]
    return Answer({"items": items, "next": None, "now": iso(await call.client.now())})


async def flow(call: Call[NoQuery, None]) -> Answer:
    """The flow in its current period; `after` of its steps are the edges of the graph."""
    return await _detail(call, None)


async def period(call: Call[NoQuery, None]) -> Answer:
    return await _detail(call, call.path["period"])


async def _detail(call: Call[NoQuery, None], period: str | None) -> Answer:
    found = await flow_period(call.client, _flow(call), call.app.settings.tz, period)
    return Answer(flow_detail(found, [found.status]))


async def periods(call: Call[PeriodsQuery, None]) -> Answer:
    found = _flow(call)
    statuses = [await found.status(each) for each in await last_periods(call.client, found, call.query.last)]
    items = [{"period": each.period, "done": each.done, "steps": step_records([each])} for each in statuses]
    return Answer({"items": items, "next": None, "now": iso(await call.client.now())})


async def start(call: Call[NoQuery, StartBody]) -> Answer:
    found = _flow(call, Right.OPERATE)
    name = await found.period(call.body.period)
    items = start_records(found.name, name, await found.start(name))
    return Answer({"items": items, "next": None, "now": iso(await call.client.now())}, 201)


async def rerun(call: Call[NoQuery, RerunBody]) -> Answer:
    found = _flow(call, Right.OPERATE)
    name = await found.period(call.path["period"])
    answers = await found.rerun(call.body.step, name, call.body.following)
    items = start_records(found.name, name, answers)
    return Answer({"items": items, "next": None, "now": iso(await call.client.now())}, 202)


async def reset(call: Call[ResetQuery, None]) -> Answer:
    found, query = _flow(call, Right.OPERATE), call.query
    if query.following and query.step is None:
        raise Problem(422, "following: of which step? Without one, all are reset anyway")
    name = await found.period(call.path["period"])
    return Answer(Reset(found.name, name, list(await found.reset(name, query.step, query.following))), 202)


STARTED = listing(shape_of(Started))
PATH = f"{API}/flows/{{name}}"
ROUTES: list[Route[Any, Any]] = [
    get(
        f"{API}/flows", "The flows of the app, in their current periods", Right.READ, flows, listing(shape_of(FlowView))
    ),
    get(PATH, "One flow, with the steps of its current period", Right.READ, flow, FLOW),
    get(f"{PATH}/periods", "The last periods, step by step", Right.READ, periods, listing(PERIOD), PeriodsQuery),
    get(f"{PATH}/periods/{{period}}", "One period", Right.READ, period, FLOW),
    post(f"{PATH}/start", "Start a period", Right.OPERATE, start, StartBody, {201: STARTED}),
    post(f"{PATH}/periods/{{period}}/rerun", "Do a step again", Right.OPERATE, rerun, RerunBody, {202: STARTED}),
    write(
        "DELETE",
        f"{PATH}/periods/{{period}}",
        "Forget that steps are done",
        Right.OPERATE,
        reset,
        None,
        {202: Reset},
        query=ResetQuery,
    ),
]
