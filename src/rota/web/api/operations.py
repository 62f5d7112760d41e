"""Operations: one action on all runs that a filter finds. A dry run comes first; the real one names the count."""

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct

from rota.app.runs import submit_operation
from rota.client.edits import Changes
from rota.client.operations import OPERATION, Action, Operation, check_undoable, checked, due_at, filter_of
from rota.domain.run import Run, State
from rota.store import Command, RunQuery
from rota.store.paging import COUNT_LIMIT
from rota.views.operations import Matched, OperationView, matched, operation_of, operation_view
from rota.views.shapes import listing, shape_of
from rota.views.values import iso
from rota.web.api.runs import RUN, Changed, Filter, shown, visible
from rota.web.cursors import opened, sealed
from rota.web.problems import Problem
from rota.web.rights import Right, is_own
from rota.web.routes import API, Answer, Call, Moment, NoQuery, NoteBody, Route, Text, get, post
from rota.web.submitting import forbidden

MOST = 100_000
"""The most runs that one operation may be expected to meet."""
AGAIN = ("retry", "reschedule")
COUNTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}}
DRY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "matched": {"type": "integer"},
        "more": {"type": "boolean"},
        "sample": {"type": "array", "items": RUN},
        "by_task": COUNTS,
        "by_state": COUNTS,
    },
    "required": ["matched", "more", "sample", "by_task", "by_state"],
}
OPERATION_SHAPE = shape_of(OperationView)
OPERATION_SHAPE["properties"]["skipped_by"] = COUNTS


class OperationBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to do to which runs: those of `filter`, or `ids`. `dry_run`: only say which. `expect`: refuse if there are
    more; a real operation by filter needs it. `at` or `delay` (seconds): when rescheduled runs are due."""

    action: Action
    filter: Filter | None = None
    ids: Annotated[list[Text], Meta(min_length=1, max_length=1000)] | None = None
    dry_run: bool = True
    expect: Annotated[int, Meta(ge=0, le=MOST)] | None = None
    at: Moment | None = None
    delay: Annotated[float, Meta(ge=0)] | None = None
    note: Text | None = None

    def query(self) -> RunQuery:
        if (self.filter is None) is (self.ids is None):
            raise Problem(422, "which runs? Give filter, or ids")
        return checked(RunQuery(ids=self.ids) if self.filter is None else self.filter.query(1, within="/filter/"))

    @property
    def expected(self) -> int | None:
        return len(self.ids) if self.expect is None and self.ids is not None else self.expect


class OperationsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    cursor: Annotated[str, Meta(max_length=100)] | None = None


async def operate(call: Call[NoQuery, OperationBody]) -> Answer:
    body = call.body
    due = await _due(call)
    if body.filter is not None:
        body.filter.allowed(call.principal)
    query = visible(call.principal, body.query())
    at_most = COUNT_LIMIT if body.expected is None else max(COUNT_LIMIT, body.expected + 1)
    found = Matched(0, False, [], {}, {}) if query is None else await matched(call.client, query, at_most)
    if body.action in AGAIN and query is not None:
        _check_own(call, (*query.tasks, *found.by_task))
    if body.dry_run:
        sample = [shown(call, run) for run in found.sample]
        fields = {"by_task": found.by_task, "by_state": found.by_state}
        return Answer({"matched": found.count, "more": found.more, "sample": sample, **fields})
    if body.expected is None:
        raise Problem(422, "expect: how many runs did the dry run match?")
    if query is None or found.more or found.count > body.expected:
        many = f"more than {found.count:,}" if found.more else f"{found.count:,}"
        raise Problem(409, f"{many} runs match, {body.expected:,} were expected: look at a dry run again")
    asked = Operation(action=body.action, filter=filter_of(query), due_at=due, note=body.note, by=call.principal.name)
    made = await submit_operation(call.client, asked)
    run = await call.client.run(made.id)
    return Answer(operation_view(run), 202, {"Location": f"{call.prefix}{API}/operations/{made.id}"})


def _check_own(call: Call[Any, Any], tasks: Iterable[str]) -> None:
    """Refuse what would let work of rota's own begin again, or later, in the name of who asked for it."""
    for task in filter(is_own, tasks):
        raise forbidden(call.principal, Right.OPERATE, task)


async def _due(call: Call[NoQuery, OperationBody]) -> float | None:
    body = call.body
    if body.action == "reschedule":
        return await due_at(call.client, Changes(at=body.at, delay=body.delay))
    if body.at is not None or body.delay is not None:
        raise Problem(422, f"at and delay are for reschedule, not for {body.action}")
    return None


def _may_see(call: Call[Any, Any], run: Run) -> bool:
    """A credential of some tasks sees its own operations."""
    asked = operation_of(run)
    return not call.principal.tasks or (asked is not None and asked.by == call.principal.name)


async def operations(call: Call[OperationsQuery, None]) -> Answer:
    page = await call.client.runs(RunQuery(task=OPERATION, limit=call.query.limit, cursor=opened(call.query)))
    items = [operation_view(run) for run in page.runs if _may_see(call, run)]
    return Answer({"items": items, "next": sealed(page.cursor, call.query), "now": iso(page.now)})


async def operation(call: Call[NoQuery, None]) -> Answer:
    return Answer(operation_view(await _found(call)))


async def _found(call: Call[Any, Any]) -> Run:
    run = await call.client.run(call.path["id"])
    if run.task != OPERATION or not _may_see(call, run):
        raise Problem(404, "no such operation, or none that this credential may see")
    return run


async def stop(call: Call[NoQuery, NoteBody]) -> Answer:
    """What is done stays done."""
    run = await _found(call)
    if run.state.final:
        raise Problem(409, f"the operation has ended: it is {run.state}", reason=str(run.reason or "") or None)
    reply = await call.client.control(Command.CANCEL, [run.id], call.body.note, call.principal.name)
    now = await call.client.run(run.id)
    return Answer(Changed(bool(reply.items[0]), str(now.state)), 202 if now.state is State.RUNNING else 200)


async def undo(call: Call[NoQuery, NoteBody]) -> Answer:
    """A second undo of the same operation is the same run."""
    run = await _found(call)
    await check_undoable(call.client, run.id)
    asked = Operation(action="undo", filter={}, of=run.id, note=call.body.note, by=call.principal.name)
    made = await submit_operation(call.client, asked)
    view = operation_view(await call.client.run(made.id))
    return Answer(view, 202, {"Location": f"{call.prefix}{API}/operations/{made.id}"})


PATH = f"{API}/operations"
ROUTES: list[Route[Any, Any]] = [
    post(
        PATH,
        "Act on all runs that match, or say which would",
        Right.OPERATE,
        operate,
        OperationBody,
        {200: DRY, 202: OPERATION_SHAPE},
        (409,),
    ),
    get(PATH, "Operations, the newest first", Right.READ, operations, listing(OPERATION_SHAPE), OperationsQuery),
    get(f"{PATH}/{{id}}", "One operation, and how far it has come", Right.READ, operation, OPERATION_SHAPE),
    post(
        f"{PATH}/{{id}}/stop",
        "Stop an operation; what is done stays done",
        Right.OPERATE,
        stop,
        NoteBody,
        {200: Changed, 202: Changed},
        (409,),
    ),
    post(
        f"{PATH}/{{id}}/undo",
        "Undo a pause, a resume, a reschedule, or a cancel of waiting runs",
        Right.OPERATE,
        undo,
        NoteBody,
        {202: OPERATION_SHAPE},
        (409,),
    ),
]
