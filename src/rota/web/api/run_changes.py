"""Runs, continued: count them, see where one comes from, change a queued one, retry or delete an ended one."""

import hashlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from rota.client.edits import Changes, edit_of, patched_arguments
from rota.client.handle import accept
from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.ids import derived
from rota.domain.intake import PRIORITY, retry_of
from rota.domain.run import Run, State
from rota.errors import RunNotFound
from rota.store import Command, Edited
from rota.store.paging import COUNT_LIMIT
from rota.views.counts import By, CountView, count_view
from rota.views.lineage import LineageView, lineage_view
from rota.views.shapes import shape_of
from rota.views.values import record
from rota.web.api.runs import RUN, Filter, found_run, shown, tag_of, visible
from rota.web.api.submits import Submitted
from rota.web.conditions import IF_MATCH, check_match
from rota.web.masks import check_unmasked
from rota.web.problems import Problem
from rota.web.rights import Right, is_own
from rota.web.routes import API, Answer, Call, Moment, NoQuery, NoteQuery, Route, Text, get, write
from rota.web.submitting import check_size, forbidden


class CountQuery(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`at_most`: where the count stops. `group_by`: a count for each state, task or type of error."""

    at_most: Annotated[int, Meta(ge=1, le=COUNT_LIMIT)] = COUNT_LIMIT
    group_by: By | None = None


class RunPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to change in a queued run. `args` is a JSON merge patch: null takes an argument away."""

    priority: Annotated[int, Meta(ge=-PRIORITY, le=PRIORITY)] | None = None
    due_at: Moment | None = None
    expires_at: Moment | None = None
    args: dict[str, Any] | None = None
    note: Text | None = None

    def changes(self) -> Changes:
        return Changes(at=self.due_at, priority=self.priority, expires=self.expires_at, args=self.args)


class AgainBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`args`: a JSON merge patch on the arguments of the run; what it does not name stays, secrets too."""

    args: dict[str, Any] | None = None
    note: Text | None = None


async def count(call: Call[CountQuery, None]) -> Answer:
    query = visible(call.principal, call.query.allowed(call.principal).query(limit=1))
    if query is None:
        return Answer(record(CountView(0, False, None if call.query.group_by is None else ())))
    return Answer(record(await count_view(call.client, query, call.query.at_most, call.query.group_by)))


async def lineage(call: Call[NoQuery, None]) -> Answer:
    return Answer(record(await lineage_view(call.client, await found_run(call), call.app.flows)))


async def patch(call: Call[NoQuery, RunPatch]) -> Answer:
    changes = call.body.changes()
    changes.check()
    check_unmasked(call.body.args, "/args")
    run = await found_run(call)
    _check_changes(call, run)
    check_match(call.request, tag_of(run))
    if run.state is not State.QUEUED:
        raise _not_queued(run)
    if call.body.args:
        check_size(msgspec.json.encode(await patched_arguments(call.client, run, call.body.args)))
    edit = await edit_of(call.client, run, changes, await call.client.now())
    before = changes.moved_from(run)
    (answer,) = (await call.client.edit([edit], call.body.note, call.principal.name, before)).items
    now = await call.client.run(run.id)
    if answer is Edited.STALE:
        raise _not_queued(now)
    return Answer(shown(call, now), headers={"ETag": tag_of(now)})


async def retry(call: Call[NoQuery, AgainBody]) -> Answer:
    """A second retry of a run with the same arguments is the same run."""
    run = await found_run(call)
    _check_changes(call, run)
    if not run.state.final:
        raise Problem(409, f"the run is {run.state}: only a run that has ended can be retried")
    change = call.body.args
    new = retry_of(run)
    if change:
        check_unmasked(change, "/args")
        args = msgspec.json.encode(await patched_arguments(call.client, run, change))
        check_size(args)
        id = derived("retry of", run.id, hashlib.sha256(args).hexdigest())
        new = replace(new, id=id, body=codec.with_args(new.body, args))
    known = await _exists(call, new.id)  # a put of the same id again answers as the first one did
    decision = accept(await call.client.submit(new))
    created = decision.reason is Reason.ACCEPTED and not known
    where = f"{call.prefix}{API}/runs/{decision.run}"
    return Answer(Submitted(decision.run, str(decision.reason), created), 201 if created else 200, {"Location": where})


async def _exists(call: Call[Any, Any], id: str) -> bool:
    try:
        await call.client.run(id)
    except RunNotFound:
        return False
    return True


def _not_queued(run: Run) -> Problem:
    if run.state is State.QUEUED:
        return Problem(409, "the arguments of the run have changed meanwhile: read the run again")
    return Problem(
        409, f"the run is {run.state}: only a queued run can be changed", reason=str(run.reason or "") or None
    )


async def delete(call: Call[NoteQuery, None]) -> Answer:
    run = await found_run(call)
    if not call.principal.may(Right.OPERATE, run.task):
        raise forbidden(call.principal, Right.OPERATE, run.task)
    if not run.state.final:
        raise Problem(409, f"the run is {run.state}: only a run that has ended can be deleted")
    reply = await call.client.control(Command.DELETE, [run.id], call.query.note, call.principal.name)
    if not reply.items[0]:
        raise Problem(409, "the run ended within the last minute: try again later", headers={"Retry-After": "60"})
    return Answer(status=204)


def _check_changes(call: Call[Any, Any], run: Run) -> None:
    """A run of a task of rota's own says who asked for it: another one would act again in that name, and a session
    whose end is moved outlives its 12 hours."""
    if is_own(run.task) or not call.principal.may(Right.OPERATE, run.task):
        raise forbidden(call.principal, Right.OPERATE, run.task)


PATH = f"{API}/runs/{{id}}"
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/runs/count", "How many runs a filter finds", Right.READ, count, shape_of(CountView), CountQuery),
    get(f"{PATH}/lineage", "Where a run comes from", Right.READ, lineage, shape_of(LineageView)),
    write(
        "PATCH",
        PATH,
        "Change a queued run",
        Right.OPERATE,
        patch,
        RunPatch,
        {200: RUN},
        (409, 412),
        conditions=(IF_MATCH,),
    ),
    write(
        "POST",
        f"{PATH}/retry",
        "Do the work of an ended run again",
        Right.OPERATE,
        retry,
        AgainBody,
        {201: Submitted, 200: Submitted},
        (409,),
    ),
    write(
        "DELETE", PATH, "Delete a run that has ended", Right.OPERATE, delete, None, {204: None}, (409,), query=NoteQuery
    ),
]
