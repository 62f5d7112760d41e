"""Schedules, continued: pause, resume, run now, backfill, and the ticks."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from rota.domain.ticks import ticks_between
from rota.schedules.stored import check_working
from rota.views.shapes import listing, shape_of
from rota.views.ticks import BackfillView, TickView, backfill_views, tick_views
from rota.views.values import iso, record
from rota.web.api.schedules import PATH, found_schedule
from rota.web.api.submits import Submitted
from rota.web.api.tasks import Switched
from rota.web.inputs import unix
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Moment, NoQuery, NoteBody, Route, Text, get, post


class TickQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`from`, `to`: only ticks of that time."""

    start: datetime | None = field(default=None, name="from")
    end: datetime | None = field(default=None, name="to")
    limit: Annotated[int, Meta(ge=1, le=500)] = 60


class BackfillBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which past ticks get a run. `dry_run`: only list them."""

    start: Moment = field(name="from")
    end: Moment = field(name="to")
    dry_run: bool = True
    note: Text | None = None


class PauseBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`until`: ticks fire again from then on, and nobody has to resume the schedule."""

    until: Moment | None = None
    note: Text | None = None


BACKFILL = listing(shape_of(BackfillView))


async def pause(call: Call[NoQuery, PauseBody]) -> Answer:
    found, _ = await found_schedule(call, Right.OPERATE)
    body = call.body
    if body.until is not None:
        unix(body.until, "until", "/until")  # refuses an instant that no clock has
    schedules = call.app.schedules
    return Answer(Switched(await schedules.pause(found.id, body.note, call.principal.name, until=body.until)))


async def resume(call: Call[NoQuery, NoteBody]) -> Answer:
    found, _ = await found_schedule(call, Right.OPERATE)
    return Answer(Switched(await call.app.schedules.resume(found.id, call.body.note, call.principal.name)))


async def run_now(call: Call[NoQuery, NoteBody]) -> Answer:
    found, _ = await found_schedule(call, Right.OPERATE)
    made = await call.app.schedules.run_now(found.id)
    where = f"{call.prefix}{API}/runs/{made.id}"
    answer = Submitted(made.id, str(made.decision.reason), made.created)
    return Answer(answer, 201 if made.created else 200, {"Location": where})


async def backfill(call: Call[NoQuery, BackfillBody]) -> Answer:
    found, now = await found_schedule(call, Right.OPERATE)
    check_working(found)
    body = call.body
    first, last = unix(body.start, "from", "/from"), unix(body.end, "to", "/to")
    if last > now:
        raise Problem(422, "to lies ahead: a backfill makes runs of ticks that have passed")
    try:
        nominals = ticks_between(found, first, last)
    except ValueError as error:
        raise Problem(422, str(error)) from None
    decisions = None
    if not body.dry_run:
        handles = await call.app.schedules.backfill(found.id, body.start, body.end)
        decisions = [handle.decision for handle in handles]
    items = [record(each) for each in backfill_views(nominals, decisions)]
    return Answer({"items": items, "next": None, "now": iso(now)}, 200 if body.dry_run else 202)


async def ticks(call: Call[TickQuery, None]) -> Answer:
    found, now = await found_schedule(call)
    query = call.query
    since = None if query.start is None else unix(query.start, "from")
    until = None if query.end is None else unix(query.end, "to")
    items = [record(each) for each in await tick_views(call.client, found, now, since, until, query.limit)]
    return Answer({"items": items, "next": None, "now": iso(now)})


ROUTES: list[Route[Any, Any]] = [
    get(f"{PATH}/ticks", "Past ticks, and ticks to come", Right.READ, ticks, listing(shape_of(TickView)), TickQuery),
    post(f"{PATH}/pause", "Fire no tick until it is resumed", Right.OPERATE, pause, PauseBody, {200: Switched}, (412,)),
    post(f"{PATH}/resume", "Let ticks fire again", Right.OPERATE, resume, NoteBody, {200: Switched}, (412,)),
    post(
        f"{PATH}/run-now",
        "Make one more run at once",
        Right.OPERATE,
        run_now,
        NoteBody,
        {201: Submitted, 200: Submitted},
        (409,),
    ),
    post(
        f"{PATH}/backfill",
        "Make runs for past ticks, or list them",
        Right.OPERATE,
        backfill,
        BackfillBody,
        {200: BACKFILL, 202: BACKFILL},
    ),
]
