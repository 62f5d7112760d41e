"""The audit: who changed what, when and why."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from rota.client.undo import entry_of, undo_entry
from rota.store import AuditEntry
from rota.views.audit import AuditFilter, AuditView, audit_views
from rota.views.shapes import listing, shape_of
from rota.views.values import iso
from rota.web.cursors import opened, sealed
from rota.web.inputs import unix
from rota.web.problems import Problem
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, LinesText, NoQuery, NoteBody, Route, Text, get, post


class AuditQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`action`: "runs.cancel", or "runs" for all that was done to runs. `subject`: one of the names. `since`, `until`:
    from then on, before then."""

    by: Text | None = None
    action: Text | None = None
    subject: Text | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditListed(AuditQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    cursor: Text | None = None


async def _found(call: Call[Any, None]) -> tuple[float, list[AuditView]]:
    """Return the time and the entries, the latest first. A credential of some tasks sees only its own entries."""
    query = call.query
    wanted = AuditFilter(
        by=query.by,
        action=query.action,
        subject=query.subject,
        since=None if query.since is None else unix(query.since, "since"),
        until=None if query.until is None else unix(query.until, "until"),
    )
    reply = await call.client.rows(AuditEntry)
    own = [entry for entry in reply.items if not call.principal.tasks or entry.by == call.principal.name]
    return reply.now, audit_views(own, wanted)


async def audit(call: Call[AuditListed, None]) -> Answer:
    now, found = await _found(call)
    if (after := opened(call.query)) is not None:
        places = {view.id: place for place, view in enumerate(found)}
        if after not in places:
            raise Problem(422, "the cursor is not where a list of these entries ended: begin again")
        found = found[places[after] + 1 :]
    items = found[: call.query.limit]
    following = sealed(items[-1].id, call.query) if len(found) > len(items) else None
    return Answer({"items": items, "next": following, "now": iso(now)})


async def export(call: Call[AuditQuery, None]) -> Answer:
    _, found = await _found(call)
    lines = b"".join(msgspec.json.encode(view) + b"\n" for view in found)
    return Answer(lines, headers={"Content-Type": "application/x-ndjson"})


class UndoneView(Struct, frozen=True):
    """What an undo has done: `done` are as before; `skipped` have changed meanwhile."""

    done: int
    skipped: int


async def undo(call: Call[NoQuery, NoteBody]) -> Answer:
    """Take back a single act. A credential of some tasks takes back only what it did itself."""
    entry = await entry_of(call.client, call.path["id"])
    if entry is None or (call.principal.tasks and entry.by != call.principal.name):
        raise Problem(404, "no such audit entry, or none that this credential may see")
    if entry.action.startswith("schedules.") and not call.principal.may(Right.SCHEDULE):
        raise Problem(403, f"{call.principal.name} needs the right {Right.SCHEDULE}", extra={"right": Right.SCHEDULE})
    done = await undo_entry(call.client, entry, call.body.note, call.principal.name)
    return Answer(UndoneView(done, entry.count - done))


ROUTES: list[Route[Any, Any]] = [
    get(
        f"{API}/audit",
        "Who changed what, the latest first",
        Right.OPERATE,
        audit,
        listing(shape_of(AuditView)),
        AuditListed,
    ),
    post(
        f"{API}/audit/{{id}}/undo",
        "Undo a single act: a pause, a resume, a reschedule, or a cancel of a waiting run",
        Right.OPERATE,
        undo,
        NoteBody,
        {200: UndoneView},
        (409,),
    ),
    get(f"{API}/audit/export", "The same, all of it, an object per line", Right.OPERATE, export, LinesText, AuditQuery),
]
