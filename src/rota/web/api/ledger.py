"""The ledger: what was decided, what workers counted, and why something does not run."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.domain.decision import DecisionCount
from rota.domain.schedule import Schedule
from rota.store import RowQuery
from rota.views.decisions import DecisionRow, decision_row, why_view
from rota.views.shapes import listing, shape_of
from rota.views.stats import KEPT, Every, GroupBy, StatView, read_stats, stat_views
from rota.views.values import iso, record
from rota.web.api.runs import WHY
from rota.web.inputs import unix
from rota.web.problems import Flaw, Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Route, Text, get
from rota.why import Why

MOST = 10_000
"""Decisions that one list looks at."""


class DecisionQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`by`: who decided last. `since`: decided then or later."""

    task: Text | None = None
    key: Text | None = None
    reason: Text | None = None
    by: Text | None = None
    since: datetime | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


class StatQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`minutes`: how far back. `every`: the length of a slot, or all for one slot. `group_by`: a row for each of these;
    without it, for each task."""

    minutes: Annotated[int, Meta(ge=1, le=KEPT["day"])] = 60
    every: Every = "minute"
    group_by: Annotated[list[GroupBy], Meta(max_length=2)] = []
    task: Text | None = None
    origin: Text | None = None


class WhyQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`subject`: a task, a schedule or the id of a run. `key`: one key of the task."""

    subject: Annotated[str, Meta(min_length=1, max_length=1000)]
    key: Text | None = None


async def decisions(call: Call[DecisionQuery, None]) -> Answer:
    query = call.query
    since = None if query.since is None else unix(query.since, "since")
    reply = await call.client.rows(DecisionCount, RowQuery(task=query.task, key=query.key, limit=MOST))
    rows = [
        row
        for row in reply.items
        if call.principal.may(Right.READ, row.task)
        and (query.reason is None or row.reason == query.reason)
        and (query.by is None or row.by == query.by)
        and (since is None or row.last_at >= since)
    ]
    items = [record(decision_row(row)) for row in rows[: query.limit]]
    more = len(rows) > query.limit or len(reply.items) == MOST
    return Answer({"items": items, "next": None, "now": iso(reply.now), "more": more})


async def stats(call: Call[StatQuery, None]) -> Answer:
    query = call.query
    if query.minutes > KEPT[query.every]:
        kept = f"slots of {query.every} are kept for {KEPT[query.every]} minutes"
        raise Problem(422, kept, errors=[Flaw("?minutes", kept)])
    reply = await read_stats(call.client, query.minutes, query.every)
    found = [
        stat
        for stat in reply.items
        if query.task in (None, stat.tally.task)
        and query.origin in (None, stat.tally.origin)
        and call.principal.may(Right.READ, stat.tally.task)
    ]
    items = [record(view) for view in stat_views(found, query.group_by or ["task"], query.every == "all")]
    return Answer({"items": items, "next": None, "now": iso(reply.now)})


async def why(call: Call[WhyQuery, None]) -> Answer:
    found = await call.app.why(call.query.subject, call.query.key)
    if call.principal.tasks and not call.principal.may(Right.READ, await _task(call, found)):
        raise Problem(404, "nothing is known of it, or nothing that this credential may see")
    return Answer(why_view(found, call.prefix + API))


async def _task(call: Call[WhyQuery, None], found: Why) -> str:
    """Return the task that the answer is about."""
    subject = call.query.subject
    if found.kind.startswith("run of "):
        return (await call.client.run(subject)).task
    if found.kind == "schedule":
        rows = (await call.client.rows(Schedule, RowQuery(names=[subject]))).items
        return rows[0].task if rows else ""
    return subject


ROUTES: list[Route[Any, Any]] = [
    get(
        f"{API}/decisions",
        "What was decided, how often, by whom",
        Right.READ,
        decisions,
        listing(shape_of(DecisionRow), more=True),
        DecisionQuery,
    ),
    get(
        f"{API}/stats",
        "What workers counted, by the minute, hour or day",
        Right.READ,
        stats,
        listing(shape_of(StatView)),
        StatQuery,
    ),
    get(
        f"{API}/why",
        "Why does it not run? For a task, a schedule or a run",
        Right.READ,
        why,
        WHY,
        WhyQuery,
        also=(404,),
    ),
]
