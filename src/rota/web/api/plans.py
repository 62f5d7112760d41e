"""Plans: what `app.plan` has made of the items of a period."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.domain.flow import check_flow_name
from rota.domain.once import check_period, named
from rota.store import RunQuery
from rota.views.shapes import listing
from rota.views.values import iso
from rota.web.api.runs import RUN, shown
from rota.web.cursors import opened, sealed
from rota.web.problems import Flaw, Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Route, Text, get


class PlanQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    period: Text
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    cursor: Annotated[str, Meta(max_length=100)] | None = None


async def plan(call: Call[PlanQuery, None]) -> Answer:
    """The runs of a plan, newest first; the key of a run is that of its item."""
    try:
        group = named(f"plan:{check_flow_name(call.path['name'])}", check_period(call.query.period))
    except ValueError as error:
        raise Problem(422, str(error), errors=[Flaw("?period", str(error))]) from None
    page = await call.client.runs(RunQuery(group=group, limit=call.query.limit, cursor=opened(call.query)))
    if not page.runs and call.query.cursor is None:
        raise Problem(404, "there is no such plan in that period, or none of its runs is kept")
    items = [shown(call, run) for run in page.runs if call.principal.may(Right.READ, run.task)]
    return Answer({"items": items, "next": sealed(page.cursor, call.query), "now": iso(page.now)})


ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/plans/{{name}}", "The runs of a plan in a period", Right.READ, plan, listing(RUN), PlanQuery),
]
