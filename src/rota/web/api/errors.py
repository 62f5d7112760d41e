"""Errors: failed runs by what went wrong. Scale: how much work there is, for an autoscaler."""

import time
from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.domain.run import Run, State
from rota.store import Page, RunQuery
from rota.store.paging import count_runs
from rota.store.queries import Instant
from rota.views.errors import ErrorGroup, error_groups
from rota.views.shapes import INSTANT, listing, shape_of
from rota.views.values import iso, record
from rota.web.api.runs import visible
from rota.web.inputs import unix
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Route, Text, get

MOST = 5_000
"""Failed runs that one list looks at."""
SECONDS = 1.0
"""Seconds after which a list reads no further page."""
DAY = 86_400.0


class ErrorQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`since`: failures from then on; without it, of the last day."""

    task: tuple[Text, ...] = ()
    since: datetime | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


class ScaleQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: tuple[Text, ...] = ()
    queue: tuple[Text, ...] = ()


class Scale(Struct, frozen=True):
    """`value`: runs that are due or running. `more`: there are more than were counted."""

    value: int
    due: int
    running: int
    more: bool


async def read_ended(call: Call[Any, None], query: RunQuery, most: int) -> tuple[list[Run], float | None]:
    """Return the runs of `query` that the caller may see, at most `most` or those of a second; and how far back that
    is, if some were left out."""
    found: list[Run] = []
    began = time.monotonic()
    page: Page | None = None
    seen = visible(call.principal, query)
    if seen is None:
        return [], None
    async with aclosing(call.client.pages(seen)) as pages:
        async for page in pages:
            found += page.runs
            if page.cursor is not None and (len(found) >= most or time.monotonic() - began > SECONDS):
                back_to = page.searched_back_to or min((run.finished_at or 0.0 for run in page.runs), default=None)
                return found[:most], back_to
    return found, None


async def errors(call: Call[ErrorQuery, None]) -> Answer:
    now = await call.client.now()
    since = now - DAY if call.query.since is None else unix(call.query.since, "since")
    query = RunQuery(
        state=[State.FAILED],
        task=tuple(call.query.task) or None,
        since=since,
        by="finished",
        order="finished",
        limit=500,
    )
    runs, back_to = await read_ended(call, query, MOST)
    groups = error_groups(runs, min(since, now), now)
    items = [record(group) for group in groups[: call.query.limit]]
    return Answer(
        {
            "items": items,
            "next": None,
            "now": iso(now),
            "more": len(groups) > len(items),
            "searched_back_to": iso(back_to),
        }
    )


async def scale(call: Call[ScaleQuery, None]) -> Answer:
    """A number for an autoscaler: KEDA's metrics-api reads `value`."""
    tasks: Sequence[str] = call.query.task or call.principal.tasks
    allowed = tuple(task for task in tasks if call.principal.may(Right.READ, task))
    if tasks and not allowed:
        return Answer(Scale(0, 0, 0, False))
    about = RunQuery(task=allowed or None, queue=call.query.queue or None)
    now = await call.client.now()
    due = await count_runs(call.client, _in_state(about, State.QUEUED, now))
    running = await count_runs(call.client, _in_state(about, State.RUNNING, None))
    return Answer(Scale(due.count + running.count, due.count, running.count, due.more or running.more))


def _in_state(about: RunQuery, state: State, due_before: float | None) -> RunQuery:
    by: Instant = "created" if due_before is None else "due"
    return RunQuery(state=[state], task=about.task, queue=about.queue, until=due_before, by=by)


ERRORS: dict[str, Any] = listing(shape_of(ErrorGroup), more=True)
ERRORS["properties"]["searched_back_to"] = {"anyOf": [INSTANT, {"type": "null"}]}
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/errors", "What went wrong, the most frequent first", Right.READ, errors, ERRORS, ErrorQuery),
    get(f"{API}/scale", "How many runs are due or running", Right.READ, scale, Scale, ScaleQuery),
]
