"""Schedules: list, read, put in the version that was read, delete."""

import asyncio
from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.domain.activity import Breaker
from rota.domain.deadline import deadline_id
from rota.domain.intake import PRIORITY, Options
from rota.domain.lint import Finding
from rota.domain.policy import Lost
from rota.domain.schedule import FIRINGS_KEPT, CatchUp, Overlap, Schedule
from rota.domain.scheduling import BUFFER_LIMIT, TIMES_LIMIT, Timed
from rota.errors import InvalidOptions
from rota.schedules.schedules import put_made
from rota.store import RowQuery
from rota.views.forecast import usual_durations
from rota.views.schedules import (
    Facts,
    ScheduleDetail,
    ScheduleView,
    expected,
    facts_of,
    firing_views,
    schedule_detail,
    schedule_view,
)
from rota.views.shapes import listing, shape_of
from rota.views.stats import read_stats
from rota.views.triggers import read_trigger, schedule_findings
from rota.views.values import Record, iso, record
from rota.web.api.retries import Again, retry_from
from rota.web.conditions import IF_MATCH, IF_NONE_MATCH, changed, check_match, tag, wants_new
from rota.web.cursors import opened, sealed
from rota.web.masks import check_unmasked, masked
from rota.web.problems import Flaw, Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Moment, NoQuery, NoteQuery, Route, Text, TriggerText, get, write
from rota.web.submitting import call_named

SCHEDULE = shape_of(ScheduleDetail)
SCHEDULE["properties"]["findings"] = {"type": "array", "items": shape_of(Finding)}
PAGE = 1000
LOOKED_AT = 10_000
"""Schedules that one page of a list looks at."""
USUAL = 24 * 60
"""Minutes of counted calls from which the usual duration of a run is taken."""
ROW = shape_of(ScheduleView)
ROW["properties"]["firings"] = SCHEDULE["properties"]["firings"]


class ScheduleQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`owner`: the app whose code declares them. `q`: text in the name, the task or the trigger. `last`: each has that
    many of its last firings, the newest first."""

    task: Text | None = None
    paused: bool | None = None
    owner: Text | None = None
    q: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    last: Annotated[int, Meta(ge=0, le=FIRINGS_KEPT)] = 0
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    cursor: Annotated[str, Meta(max_length=1100, pattern="^[^\\x00]*$")] | None = None

    def takes(self, schedule: Schedule) -> bool:
        places = (schedule.id, schedule.task, schedule.trigger)
        return (
            (self.paused is None or schedule.paused is self.paused)
            and (self.owner is None or schedule.owner == self.owner)
            and (self.q is None or any(self.q.lower() in place.lower() for place in places))
        )


class BreakerBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """After so many failed runs in a row, ticks make no run for `cool_down` seconds: a day, if it is left out."""

    failures: Annotated[int, Meta(ge=1, le=TIMES_LIMIT)]
    cool_down: Annotated[float, Meta(gt=0)] | None = None


class ScheduleBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When, which call, and the policies. `tz` is the zone of a trigger that names none. `expect`: it is late unless a
    run has succeeded by then, such as 07:00. `buffer`: how many runs may wait, with the overlap `buffer`. `times`: it
    ends after so many runs. Without `paused`, a schedule keeps its pause."""

    trigger: TriggerText
    task: Annotated[str, Meta(min_length=1, max_length=200)]
    args: dict[str, Any] = {}
    tz: Annotated[str, Meta(max_length=100)] | None = None
    key: Text | None = None
    priority: Annotated[int, Meta(ge=-PRIORITY, le=PRIORITY)] | None = None
    queue: Text | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp = "latest"
    grace: Annotated[float, Meta(gt=0)] | None = None
    start: Moment | None = None
    end: Moment | None = None
    buffer: Annotated[int, Meta(ge=1, le=BUFFER_LIMIT)] | None = None
    times: Annotated[int, Meta(ge=1, le=TIMES_LIMIT)] | None = None
    breaker: BreakerBody | None = None
    expect: Text | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    retry: Again | None = None
    lost: Lost | None = None
    paused: bool = False
    unknown_ok: bool = False
    note: Text | None = None

    def timed(self) -> Timed:
        return Timed(
            overlap=self.overlap,
            catch_up=self.catch_up,
            grace=self.grace,
            start=self.start,
            end=self.end,
            buffer=self.buffer,
            times=self.times,
            breaker=None if self.breaker is None else Breaker(self.breaker.failures, self.breaker.cool_down),
            queue=self.queue,
            timeout=self.timeout,
            retry=None if self.retry is None else retry_from(self.retry),
            lost=self.lost,
        )


async def known_schedule(call: Call[Any, Any]) -> tuple[Schedule | None, float]:
    """Return the schedule of the path, if the caller may see it, and the store's time."""
    id = call.path["id"]
    reply = await call.client.rows(Schedule, RowQuery(names=[id], limit=1))
    if reply.items and not call.principal.may(Right.READ, reply.items[0].task):
        raise _unknown(id)
    return reply.items[0] if reply.items else None, reply.now


async def found_schedule(call: Call[Any, Any], right: Right = Right.READ) -> tuple[Schedule, float]:
    """Return the schedule of the path, on whose task the caller has the `right`."""
    found, now = await known_schedule(call)
    if found is None:
        raise _unknown(call.path["id"])
    if not call.principal.may(right, found.task):
        raise Problem(403, f"{call.principal.name} needs the right {right} for the task {found.task}")
    return found, now


def _unknown(id: str) -> Problem:
    return Problem(404, f"no schedule {id}, or none that this credential may see")


async def detail(call: Call[Any, Any], schedule: Schedule, now: float) -> Record:
    (facts,) = await facts_of(call.client, [schedule], call.app.settings.tz, now, FIRINGS_KEPT)
    shown = record(schedule_detail(facts, await expected(call.client, schedule)))
    payload = call.principal.may(Right.PAYLOAD, schedule.task)
    found = [record(each) for each in await _findings(call, schedule, now)]
    return shown | {"args": masked(shown["args"]) if payload else None, "findings": found}


async def _findings(call: Call[Any, Any], schedule: Schedule, now: float) -> list[Finding]:
    """Return what may be wrong with the schedule: clock changes, fires closer than a run usually takes, and others."""
    if schedule.ended:
        return []
    stats = (await read_stats(call.client, USUAL, "hour")).items
    usual = usual_durations(stat for stat in stats if stat.tally.task == schedule.task).get(schedule.task)
    # in a thread, because a search through excluded fires may take a while
    return await asyncio.to_thread(schedule_findings, schedule, call.app.settings.tz, now, usual)


async def schedules(call: Call[ScheduleQuery, None]) -> Answer:
    query, found = call.query, list[Schedule]()
    after, looked = opened(query) or "", 0
    while True:
        page = await call.client.rows(Schedule, RowQuery(task=query.task, after=after, limit=PAGE))
        for schedule in page.items:
            after, looked = schedule.id, looked + 1
            if query.takes(schedule) and call.principal.may(Right.READ, schedule.task):
                found.append(schedule)
            if len(found) == query.limit or looked == LOOKED_AT:
                break
        if not page.items or len(found) == query.limit or looked == LOOKED_AT:
            break
    facts = await facts_of(call.client, found, call.app.settings.tz, page.now, max(1, query.last))
    items = [_row(each, query.last) for each in facts]
    return Answer({"items": items, "next": sealed(after if page.items else None, query), "now": iso(page.now)})


def _row(facts: Facts, last: int) -> Record:
    shown = record(schedule_view(facts))
    return shown | {"firings": [record(each) for each in firing_views(facts)]} if last else shown


async def schedule(call: Call[NoQuery, None]) -> Answer:
    found, now = await found_schedule(call)
    return Answer(await detail(call, found, now), headers={"ETag": tag(found.version)})


async def put(call: Call[NoQuery, ScheduleBody]) -> Answer:
    known, now = await known_schedule(call)
    _check_put(call, known)
    check_unmasked(call.body.args, "/args")
    made = await _made(call)
    findings = schedule_findings(made, call.app.settings.tz, now)
    wrong = [Flaw("/trigger", f"{each.message} {each.hint}") for each in findings if each.level == "error"]
    if wrong:
        raise Problem(422, f"the schedule: {wrong[0].detail}", errors=wrong)
    version = 0 if known is None else known.version
    kept = await put_made(call.app.schedules, made, call.body.expect, call.body.paused, version)
    if known is None and (kept.trigger, kept.task, kept.key, kept.body) != (
        made.trigger,
        made.task,
        made.key,
        made.body,
    ):
        raise changed(tag(kept.version))  # somebody else has added it meanwhile
    return Answer(await detail(call, kept, now), 201 if known is None else 200, {"ETag": tag(kept.version)})


def _check_put(call: Call[Any, Any], known: Schedule | None) -> None:
    current = None if known is None else tag(known.version)
    named = check_match(call.request, current)
    if wants_new(call.request) and known is not None:
        raise changed(current)
    if known is None:
        return
    _check_ours(call, known)
    if not named:
        raise Problem(
            428, f"the schedule exists: send {IF_MATCH} with its ETag to replace it", headers={"ETag": current or ""}
        )


def _check_ours(call: Call[Any, Any], known: Schedule) -> None:
    if not call.principal.may(Right.SCHEDULE, known.task):
        raise Problem(403, f"{call.principal.name} needs the right {Right.SCHEDULE} for the task {known.task}")
    if known.owner:
        raise Problem(409, f"the code of the app {known.owner} declares this schedule: change the code")
    if known.deadline is not None:
        raise Problem(409, f"this is a deadline: it belongs to {known.id.removeprefix(deadline_id(''))}")


async def _made(call: Call[NoQuery, ScheduleBody]) -> Schedule:
    body = call.body
    try:
        trigger, _ = read_trigger(body.trigger, body.tz or call.app.settings.tz)
    except InvalidOptions as error:
        raise Problem(422, str(error), errors=[Flaw("/trigger", str(error))]) from None
    options = Options(key=body.key, priority=body.priority)
    made = await call_named(call, body.task, body.args, options, body.unknown_ok, Right.SCHEDULE)
    try:
        return made.call.to_schedule(call.path["id"], trigger, body.timed())
    except ValueError as error:
        raise Problem(422, str(error)) from None


async def delete(call: Call[NoteQuery, None]) -> Answer:
    known, _ = await found_schedule(call, Right.SCHEDULE)
    _check_ours(call, known)
    check_match(call.request, tag(known.version))
    await call.app.schedules.delete(known.id, call.query.note, call.principal.name)
    return Answer(status=204)


PATH = f"{API}/schedules/{{id:path}}"
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/schedules", "All schedules", Right.READ, schedules, listing(ROW), ScheduleQuery),
    get(
        PATH, "One schedule, with its last and next ticks", Right.READ, schedule, SCHEDULE, conditions=(IF_NONE_MATCH,)
    ),
    write(
        "PUT",
        PATH,
        "Add a schedule, or replace the version that was read",
        Right.SCHEDULE,
        put,
        ScheduleBody,
        {201: SCHEDULE, 200: SCHEDULE},
        (409, 412, 428),
        conditions=(IF_MATCH, IF_NONE_MATCH),
    ),
    write(
        "DELETE",
        PATH,
        "Delete a schedule; its runs stay",
        Right.SCHEDULE,
        delete,
        None,
        {204: None},
        (409, 412),
        query=NoteQuery,
        conditions=(IF_MATCH,),
    ),
]
