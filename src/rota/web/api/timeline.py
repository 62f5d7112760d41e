"""The time line: what ran when, and what will fire."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from msgspec import Meta, Struct, field

from rota.app.core import core_of
from rota.domain.forecast import Fire, forecast
from rota.domain.run import State
from rota.store import RunQuery, Stat
from rota.views import timeline as view
from rota.views.inventory import inventory_of
from rota.views.shapes import INSTANT, listing, shape_of
from rota.views.values import iso, record
from rota.web.api.errors import read_ended
from rota.web.inputs import unix
from rota.web.problems import Flaw, Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Route, Text, get

MOST_RUNS = 20_000
MOST_ROWS = 200
LONGEST = 400 * 86_400.0
HOUR = 3600.0


class TimelineQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without `from` and `to`: the last hour and the next. `by`: what a row is. `px`: pixels of the whole width.
    `row_after`: the rows behind this one."""

    from_: datetime | None = field(default=None, name="from")
    to: datetime | None = None
    by: view.By = "task"
    px: Annotated[int, Meta(ge=10, le=10_000)] = 1200
    task: Text | None = None
    row_after: Text = ""


async def timeline(call: Call[TimelineQuery, None]) -> Answer:
    query, now = call.query, await call.client.now()
    start = now - HOUR if query.from_ is None else unix(query.from_, "from")
    end = now + HOUR if query.to is None else unix(query.to, "to")
    if not 0 < end - start <= LONGEST:
        raise Problem(422, "to must be after from, by at most 400 days", errors=[Flaw("?to", "not after from")])
    window = view.Window(start, end, query.px)
    ended = RunQuery(task=query.task, since=start, until=end, by="finished", order="finished", limit=500)
    runs, back_to = await read_ended(call, ended, MOST_RUNS)
    under_way, _ = await read_ended(call, RunQuery(task=query.task, state=[State.RUNNING], limit=500), MOST_RUNS)
    calls = [made for run in (*runs, *under_way) for made in view.calls_of(run, query.by, now)]
    if back_to is not None and query.by == "task":
        counted = (await call.client.stats(max(1, int((now - start) // 60) + 1))).items
        calls += _of_minutes(call, counted, back_to)
    if end > now and query.by != "worker":
        fires = await _fires(call, now, end)
        calls += [view.Call(getattr(fire, query.by), fire.at, fire.at, "planned") for fire in fires]
    rows = [row for row in view.timeline_rows(calls, window) if row.name > query.row_after]
    items = [record(row) | {"segments": [record(part) for part in row.segments]} for row in rows[:MOST_ROWS]]
    return Answer(
        {
            "items": items,
            "next": items[-1]["name"] if len(rows) > len(items) else None,
            "now": iso(now),
            "from": iso(start),
            "to": iso(end),
            "minutes_before": iso(back_to),
        }
    )


def _of_minutes(call: Call[TimelineQuery, None], counted: Sequence[Stat], back_to: float) -> Iterator[view.Call]:
    """Return what is known of the time before `back_to`: how many calls ended in each minute."""
    for stat in counted:
        at, tally = stat.minute * 60.0, stat.tally
        wanted = call.query.task in (None, tally.task) and call.principal.may(Right.READ, tally.task)
        if at < back_to and wanted:
            for outcome in ("succeeded", "failed"):
                if count := getattr(tally, outcome):
                    yield view.Call(tally.task, at, min(at + 60.0, back_to), outcome, count)


async def _fires(call: Call[TimelineQuery, None], now: float, end: float) -> Sequence[Fire]:
    settings, registry = call.app.settings, core_of(call.app).registry
    inventory = await inventory_of(
        call.client, settings.tz, settings.name, registry.declared(), registry.specs(), call.app.flows.values()
    )
    firing = [
        each
        for each in inventory.started().values()
        if call.query.task in (None, each.task)
        and call.principal.may(Right.READ, each.task)
        and not inventory.is_disabled(each)
    ]
    zone = ZoneInfo(settings.tz)
    # in a thread, because thousands of fires take a while
    found = await asyncio.to_thread(forecast, firing, inventory.durations, now, end, zone, inventory.flows)
    return found.fires


TIMELINE: dict[str, Any] = listing(shape_of(view.TimelineRow))
TIMELINE["properties"] |= {"from": INSTANT, "to": INSTANT, "minutes_before": {"anyOf": [INSTANT, {"type": "null"}]}}
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/timeline", "What ran when, and what will fire", Right.READ, timeline, TIMELINE, TimelineQuery),
]
