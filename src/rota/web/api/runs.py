"""Runs: submit, read, explain, and act on one."""

import hashlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from rota.client.fleet import is_inner
from rota.domain.answers import Fact
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Unique
from rota.domain.intake import Options
from rota.domain.policy import Lost, Retry
from rota.domain.run import NewRun, Run, State
from rota.errors import Refused
from rota.store import Command, RunQuery
from rota.store.paging import with_fans
from rota.store.queries import Instant
from rota.views.decisions import why_view
from rota.views.runs import logs_view, run_view
from rota.views.shapes import INSTANT, Schema, listing, shape_of
from rota.views.values import iso
from rota.web.conditions import tag
from rota.web.masks import shown_run
from rota.web.problems import Problem, problem_of
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, NoQuery, NoteBody, Route, Text, get, write
from rota.web.submitting import call_named

RUN = shape_of(Run, without=("body",))
RUN["properties"]["attempts"]["items"]["properties"]["log"] = {"type": "boolean"}
RUNS = listing(RUN)
RUNS["properties"]["searched_back_to"] = {"anyOf": [INSTANT, {"type": "null"}]}
MOST_WAIT = 60.0
BATCH = 1000


class Filter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs: the fields of RunQuery, with instants as RFC 3339."""

    state: tuple[State, ...] = ()
    task: tuple[Text, ...] = ()
    key: Text | None = None
    queue: tuple[Text, ...] = ()
    group: Text | None = None
    schedule: Text | None = None
    flow: Text | None = None
    period: Text | None = None
    origin: Text | None = None
    worker: Text | None = None
    error: Text | None = None
    reason: Text | None = None
    retry_of: Text | None = None
    since: datetime | None = None
    until: datetime | None = None
    by: Instant = "created"
    q: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    order: Instant = "created"

    def query(self, limit: int, cursor: str | None = None) -> RunQuery:
        given = {name: getattr(self, name) for name in Filter.__struct_fields__}
        for name in ("task", "queue"):
            given[name] = given[name] or None  # none named: any, which is no condition
        for name in ("since", "until"):
            given[name] = None if given[name] is None else given[name].timestamp()
        return RunQuery(**given, limit=limit, cursor=cursor)


class Listed(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    cursor: Annotated[str, Meta(max_length=100)] | None = None


IDEMPOTENCY_KEY = "Idempotency-Key"
KEY_LIMIT = 200
"""Characters of an Idempotency-Key."""


class Waiting(Struct, frozen=True, forbid_unknown_fields=True):
    """`wait`: answer when the run has ended, or after so many seconds."""

    wait: Annotated[float, Meta(ge=0, le=MOST_WAIT)] = 0.0


class NewRunBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to submit. `args` are the arguments by name. `unknown_ok`: accept a task that no worker has published."""

    task: Annotated[str, Meta(min_length=1, max_length=200)]
    args: dict[str, Any] = {}
    id: Annotated[str, Meta(min_length=1, max_length=63)] | None = None
    key: Text | None = None
    queue: Text | None = None
    priority: Annotated[int, Meta(ge=-100, le=100)] | None = None
    delay: Annotated[float, Meta(ge=0)] | None = None
    at: datetime | None = None
    expires: float | datetime | None = None
    unique: Unique | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    retry: Annotated[int, Meta(ge=0)] | None = None
    lost: Lost | None = None
    headers: dict[str, str] | None = None
    unknown_ok: bool = False
    note: Text | None = None

    def options(self) -> Options:
        return Options(
            delay=self.delay,
            at=self.at,
            expires=self.expires,
            priority=self.priority,
            key=self.key,
            queue=self.queue,
            unique=self.unique,
            timeout=self.timeout,
            retry=None if self.retry is None else Retry(self.retry),
            lost=self.lost,
            headers=self.headers,
            id=self.id,
        )


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    runs: Annotated[list[NewRunBody], Meta(max_length=BATCH)]


class Submitted(Struct, frozen=True):
    """The answer to a submit. `created`: False if the submit joined a run that was there."""

    run: str
    reason: str
    created: bool


class BatchItem(Struct, frozen=True, omit_defaults=True):
    """The answer to one run of a batch, in the order of the batch."""

    status: int
    run: str | None = None
    reason: str | None = None
    detail: str | None = None


class BatchAnswer(Struct, frozen=True):
    items: list[BatchItem]


class Changed(Struct, frozen=True):
    """`changed`: False if the run was in that state already. `state` is the state of the run now."""

    changed: bool
    state: str


def shown(call: Call[Any, Any], run: Run) -> dict[str, object]:
    """Return the run as the caller may see it."""
    return shown_run(run_view(run), call.principal.may(Right.PAYLOAD, run.task))


async def found_run(call: Call[Any, Any]) -> Run:
    """Return the run of the path. A run of a task that the caller may not see is not found."""
    run = await call.client.run(call.path["id"])
    if not call.principal.may(Right.READ, run.task):
        raise Problem(404, "no such run, or none that this credential may see")
    return run


def tag_of(run: Run) -> str:
    """Return the ETag of a run. It says nothing of the arguments, which may be secret: changes of arguments merge."""
    parts = (run.state, run.fence, run.due_at, run.expires_at, run.priority, run.touches, run.touched_at, run.note)
    return tag(hashlib.sha256(repr(parts).encode(errors="replace")).hexdigest()[:16])


async def submit(call: Call[NoQuery, NewRunBody]) -> Answer:
    options = call.body.options()
    if (given := call.request.headers.get(IDEMPOTENCY_KEY)) is not None:
        options = replace(options, id=_id_for(given, call))
    made = await call_named(call, call.body.task, call.body.args, options, call.body.unknown_ok)
    decision = await call.client.submit(await made.run(call.client))
    if not decision:
        raise _refused(decision)
    answer = Submitted(decision.run, str(decision.reason), decision.reason is Reason.ACCEPTED)
    headers = {"Location": f"{call.prefix}{API}/runs/{decision.run}"}
    if decision.run == options.id and not answer.created:
        headers["Idempotency-Replayed"] = "true"
    return Answer(answer, 201 if answer.created else 200, headers)


def _id_for(key: str, call: Call[NoQuery, NewRunBody]) -> str:
    """Return the id of the run that this credential makes with this key. Two credentials may use one key."""
    if call.body.id is not None:
        raise Problem(422, f"give an id or {IDEMPOTENCY_KEY}, not both")
    if not 0 < len(key) <= KEY_LIMIT or not key.isprintable():
        raise Problem(422, f"{IDEMPOTENCY_KEY}: from 1 to {KEY_LIMIT} printable characters")
    return hashlib.sha256(f"{call.principal.name}\0{key}".encode(errors="replace")).hexdigest()[:48]


async def submit_batch(call: Call[NoQuery, Batch]) -> Answer:
    """Put all good runs of the batch in one step. A bad run harms no other."""
    items: list[BatchItem | None] = []
    runs: list[NewRun] = []
    for body in call.body.runs:
        try:
            made = await call_named(call, body.task, body.args, body.options(), body.unknown_ok)
            runs.append(await made.run(call.client))
            items.append(None)
        except Problem as problem:
            items.append(BatchItem(problem.status, reason=problem.reason, detail=problem.detail))
    decisions = iter((await call.client.put(runs)).items if runs else [])
    return Answer(BatchAnswer([_item(next(decisions)) if item is None else item for item in items]))


def _item(decision: Decision) -> BatchItem:
    if decision:
        status = 201 if decision.reason is Reason.ACCEPTED else 200
        return BatchItem(status, decision.run, str(decision.reason))
    problem = _refused(decision)
    return BatchItem(problem.status, decision.run or None, str(decision.reason), problem.detail)


def _refused(decision: Decision) -> Problem:
    if decision.reason is Reason.QUEUE_FULL:
        return Problem(429, "the queue of the task is full", reason="queue_full", headers={"Retry-After": "1"})
    if decision.reason is Reason.ID_CONFLICT:
        words = "a run with this id or Idempotency-Key exists, and its task or its arguments differ"
        return Problem(422, words, reason=str(decision.reason))
    return problem_of(Refused(decision))


def _is_shown(call: Call[Listed, None], query: RunQuery, run: Run) -> bool:
    """Runs of rota's own tasks are shown to those who ask for the task."""
    return call.principal.may(Right.READ, run.task) and (bool(query.tasks) or not is_inner(run.task))


async def runs(call: Call[Listed, None]) -> Answer:
    query = call.query.query(call.query.limit, call.query.cursor)
    page = await with_fans(call.client, await call.client.runs(query))
    items = [shown(call, run) for run in page.runs if _is_shown(call, query, run)]
    return Answer(
        {"items": items, "next": page.cursor, "now": iso(page.now), "searched_back_to": iso(page.searched_back_to)}
    )


async def run(call: Call[Waiting, None]) -> Answer:
    found = await found_run(call)
    if call.query.wait and not found.state.final:
        try:
            found = await call.client.ended(found.id, call.query.wait)
        except TimeoutError:
            found = await call.client.run(found.id)
    return Answer(shown(call, found), headers={"ETag": tag_of(found)})


async def result(call: Call[NoQuery, None]) -> Answer:
    found = await found_run(call)
    if not found.state.final:
        raise Problem(409, f"the run is {found.state}: it has no result yet", headers={"Retry-After": "1"})
    if found.state is not State.SUCCEEDED:
        raise Problem(409, f"the run ended as {found.state}: it has no result", reason=str(found.reason or "") or None)
    if not call.principal.may(Right.PAYLOAD, found.task):
        raise Problem(403, f"{call.principal.name} needs the right {Right.PAYLOAD}")
    return Answer({"result": shown_run(run_view(found), payload=True)["result"]})


class AttemptLog(Struct, frozen=True):
    """The end of what one attempt has logged. Terminal sequences are taken out."""

    fence: int
    worker: str
    outcome: str
    claimed_at: str
    ended_at: str
    text: str


class LogsAnswer(Struct, frozen=True):
    items: list[AttemptLog]


async def logs(call: Call[NoQuery, None]) -> Answer:
    found = await found_run(call)
    if not call.principal.may(Right.PAYLOAD, found.task):
        raise Problem(403, f"{call.principal.name} needs the right {Right.PAYLOAD}")
    return Answer({"items": logs_view(found)})


async def why(call: Call[NoQuery, None]) -> Answer:
    found = await found_run(call)
    return Answer(why_view(await call.app.why(found.id)))


async def cancel(call: Call[NoQuery, NoteBody]) -> Answer:
    return await _control(call, Command.CANCEL)


async def pause(call: Call[NoQuery, NoteBody]) -> Answer:
    return await _control(call, Command.PAUSE)


async def resume(call: Call[NoQuery, NoteBody]) -> Answer:
    return await _control(call, Command.RESUME)


async def _control(call: Call[NoQuery, NoteBody], command: Command) -> Answer:
    found = await found_run(call)
    if found.state.final:
        raise Problem(409, f"the run has ended: it is {found.state}", reason=str(found.reason or "") or None)
    reply = await call.client.control(command, [found.id], call.body.note, call.principal.name)
    now = await call.client.run(found.id)
    asked = now.state is State.RUNNING and command is not Command.RESUME
    return Answer(Changed(bool(reply.items[0]), str(now.state)), 202 if asked else 200)


Write = Callable[[Call[NoQuery, NoteBody]], Awaitable[Answer]]


def _write(path: str, summary: str, handler: Write, answers: dict[int, Any]) -> Route[Any, Any]:
    return write("POST", f"{API}/runs/{{id}}/{path}", summary, Right.OPERATE, handler, NoteBody, answers, (409,))


WHY: Schema = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("subject", "kind", "answer")},
        "held": {"type": "boolean"},
        "facts": {"type": "array", "items": shape_of(Fact)},
    },
    "required": ["subject", "kind", "answer", "held", "facts"],
}
ROUTES: list[Route[Any, Any]] = [
    write(
        "POST",
        f"{API}/runs",
        "Submit a run",
        Right.SUBMIT,
        submit,
        NewRunBody,
        {201: Submitted, 200: Submitted},
        (404, 409),
        conditions=(IDEMPOTENCY_KEY,),
    ),
    write(
        "POST",
        f"{API}/runs/batch",
        "Submit many runs in one step",
        Right.SUBMIT,
        submit_batch,
        Batch,
        {200: BatchAnswer},
    ),
    get(f"{API}/runs", "Runs by filter, a page at a time", Right.READ, runs, RUNS, Listed),
    get(f"{API}/runs/{{id}}", "One run; with wait, when it has ended", Right.READ, run, RUN, Waiting),
    get(f"{API}/runs/{{id}}/logs", "What a run has logged, attempt by attempt", Right.READ, logs, LogsAnswer),
    get(f"{API}/runs/{{id}}/result", "The result of a run", Right.READ, result, {"type": "object"}, also=(409,)),
    get(f"{API}/runs/{{id}}/why", "Why does it not run?", Right.READ, why, WHY),
    _write("cancel", "Cancel a run", cancel, {200: Changed, 202: Changed}),
    _write("pause", "Pause a run", pause, {200: Changed, 202: Changed}),
    _write("resume", "Resume a paused run", resume, {200: Changed}),
]
