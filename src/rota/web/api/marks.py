"""Marks: what is remembered as done; let something count as done, or forget it."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.domain.guards import Mark
from rota.domain.intake import check_name
from rota.domain.keys import check_key
from rota.store import MarkRow, RowQuery
from rota.views.marks import MarkView, mark_view
from rota.views.shapes import listing, shape_of
from rota.views.values import iso, record
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, NoQuery, NoteBody, NoteQuery, Route, Text, get, write

MOST = 10_000
"""Marks that one list looks at."""


class MarkQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: Text | None = None
    key: Text | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


async def marks(call: Call[MarkQuery, None]) -> Answer:
    query = call.query
    most = MOST if call.principal.tasks else query.limit + 1
    reply = await call.client.rows(MarkRow, RowQuery(task=query.task, key=query.key, limit=most))
    rows = [row for row in reply.items if call.principal.may(Right.READ, row.task)]
    items = [record(mark_view(row)) for row in rows[: query.limit]]
    more = len(rows) > query.limit or len(reply.items) == MOST
    return Answer({"items": items, "next": None, "now": iso(reply.now), "more": more})


async def put(call: Call[NoQuery, NoteBody]) -> Answer:
    now = await call.client.now()
    await call.client.mark([_row(call, Mark(succeeded_at=now, finished_at=now))])
    return Answer(status=204)


async def clear(call: Call[NoteQuery, None]) -> Answer:
    (changed,) = (await call.client.mark([_row(call, None)])).items
    if not changed:
        raise Problem(404, "nothing is remembered under this task and key")
    return Answer(status=204)


def _row(call: Call[Any, Any], mark: Mark | None) -> MarkRow:
    try:
        task, key = check_name(call.path["task"]), check_key(call.path["key"])
    except ValueError as error:
        raise Problem(422, str(error)) from None
    if not call.principal.may(Right.OPERATE, task):
        raise Problem(403, f"{call.principal.name} needs the right {Right.OPERATE} for the task {task}")
    return MarkRow(task, key, mark)


PATH = f"{API}/marks/{{task}}/{{key:path}}"
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/marks", "What is done", Right.READ, marks, listing(shape_of(MarkView), more=True), MarkQuery),
    write("PUT", PATH, "Let something count as done, as of now", Right.OPERATE, put, NoteBody, {204: None}),
    write("DELETE", PATH, "Forget that it is done", Right.OPERATE, clear, None, {204: None}, query=NoteQuery),
]
