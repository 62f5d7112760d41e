"""Runs: submit, read, explain, and act on one."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Self

from msgspec import Meta, Struct
from msgspec.structs import replace

from rota.client.client import Client
from rota.client.fleet import is_inner
from rota.domain import codec
from rota.domain.answers import Fact
from rota.domain.decision import Reason
from rota.domain.policy import Policy
from rota.domain.run import NewRun, Origin, Run, State
from rota.errors import RunNotFound
from rota.store import Command, RunQuery
from rota.store.paging import with_fans
from rota.store.queries import Instant
from rota.views.decisions import why_view
from rota.views.runs import logs_view, run_view
from rota.views.shapes import INSTANT, Schema, listing, shape_of
from rota.views.values import iso
from rota.web.conditions import IF_NONE_MATCH, tag
from rota.web.cursors import opened, sealed
from rota.web.inputs import unix
from rota.web.masks import shown_run
from rota.web.problems import Problem
from rota.web.rights import Principal, Right
from rota.web.routes import API, Answer, Call, NoQuery, NoteBody, Route, Text, get, write

RUN = shape_of(Run, without=("body",))
RUN["properties"]["attempts"]["items"]["properties"]["log"] = {"type": "boolean"}
RUNS = listing(RUN)
RUNS["properties"]["searched_back_to"] = {"anyOf": [INSTANT, {"type": "null"}]}
MOST_WAIT = 60.0
NEWS = 1.0
"""Seconds without a hint after which a caller who waits looks again."""


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

    def allowed(self, principal: Principal) -> Self:
        """Return the filter. `q` searches arguments: who may not read them could find them letter by letter."""
        if self.q is not None and not principal.may(Right.PAYLOAD):
            words = f"q searches arguments: {principal.name or 'the caller'} needs the right {Right.PAYLOAD}"
            raise Problem(403, words, extra={"right": Right.PAYLOAD})
        return self

    def query(self, limit: int, cursor: str | None = None, within: str = "?") -> RunQuery:
        """Return the query of the store. `within`: where the filter stands in the request, for what is wrong in it."""
        given = {name: getattr(self, name) for name in Filter.__struct_fields__}
        for name in ("task", "queue"):
            given[name] = given[name] or None  # none named: any, which is no condition
        for name in ("since", "until"):
            given[name] = None if given[name] is None else unix(given[name], name, f"{within}{name}")
        return RunQuery(**given, limit=limit, cursor=cursor, brief=True)


class Listed(Filter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    cursor: Annotated[str, Meta(max_length=100)] | None = None


class Waiting(Struct, frozen=True, forbid_unknown_fields=True):
    """`wait`: answer when the run has ended, or after so many seconds. `since_fence`: answer also when a claim has
    given the run a higher fence, so that a caller follows its attempts."""

    wait: Annotated[float, Meta(ge=0, le=MOST_WAIT)] = 0.0
    since_fence: Annotated[int, Meta(ge=0)] | None = None


class Changed(Struct, frozen=True):
    """`changed`: False if the run was in that state already. `state` is the state of the run now."""

    changed: bool
    state: str


def shown(call: Call[Any, Any], run: Run) -> dict[str, object]:
    """Return the run as the caller may see it."""
    return shown_run(run_view(run), call.principal.may(Right.PAYLOAD, run.task))


async def found_run(call: Call[Any, Any]) -> Run:
    """Return the run of the path. A run of a task that the caller may not see is not found."""
    try:
        run = await call.client.run(call.path["id"])
    except RunNotFound:
        if await is_forgotten(call.client, call.path["id"]):
            raise Problem(410, "the run has ended and is no longer kept: only its id is remembered") from None
        raise
    if not call.principal.may(Right.READ, run.task):
        raise Problem(404, "no such run, or none that this credential may see")
    return run


async def is_forgotten(client: Client, id: str) -> bool:
    """Return whether the store remembers the id of a run that it no longer keeps: a submit with that id and other
    content would be a conflict."""
    other = NewRun(id=id, task="rota.forgotten", body=codec.encode(b"{}", Origin(), Policy()), fingerprint="?")
    return (await client.try_put(other)).reason is Reason.ID_CONFLICT


def tag_of(run: Run) -> str:
    """Return the ETag of a run. It says nothing of the arguments, which may be secret: changes of arguments merge."""
    parts = (run.state, run.fence, run.due_at, run.expires_at, run.priority, run.touches, run.touched_at, run.note)
    return tag(hashlib.sha256(repr(parts).encode(errors="replace")).hexdigest()[:16])


async def ended_by(call: Call[Any, Any], run: Run, seconds: float) -> Run:
    """Return the run as it is when it has ended, or after so many seconds."""
    if run.state.final:
        return run
    try:
        return await call.client.ended(run.id, seconds)
    except TimeoutError:
        return await call.client.run(run.id)


def visible(principal: Principal, query: RunQuery) -> RunQuery | None:
    """Return `query` for the tasks that the caller may see; None if there is none among those that it names."""
    if not principal.tasks:
        return query
    tasks = [task for task in principal.tasks if not query.tasks or task in query.tasks]
    return replace(query, task=tasks) if tasks else None


def _is_shown(call: Call[Listed, None], run: Run) -> bool:
    """Runs of rota's own tasks are shown to those who ask for the task."""
    return call.principal.may(Right.READ, run.task) and (bool(call.query.task) or not is_inner(run.task))


async def runs(call: Call[Listed, None]) -> Answer:
    query = call.query.allowed(call.principal).query(call.query.limit, opened(call.query))
    seen = visible(call.principal, query)
    if seen is None:
        return Answer({"items": [], "next": None, "now": iso(await call.client.now()), "searched_back_to": None})
    page = await with_fans(call.client, await call.client.runs(seen))
    items = [shown(call, run) for run in page.runs if _is_shown(call, run)]
    return Answer(
        {
            "items": items,
            "next": sealed(page.cursor, call.query),
            "now": iso(page.now),
            "searched_back_to": iso(page.searched_back_to),
        }
    )


async def run(call: Call[Waiting, None]) -> Answer:
    found = await found_run(call)
    if call.query.since_fence is not None:
        found = await _claimed(call, found, call.query.since_fence)
    elif call.query.wait:
        found = await ended_by(call, found, call.query.wait)
    return Answer(shown(call, found), headers={"ETag": tag_of(found)})


async def _claimed(call: Call[Waiting, None], run: Run, fence: int) -> Run:
    """Return the run as it is when its fence is above `fence`, when it has ended, or when the time is over."""
    with suppress(TimeoutError):
        async with asyncio.timeout(call.query.wait):
            while run.fence <= fence and not run.state.final:
                await call.client.news(NEWS)
                run = await call.client.run(run.id)
    return run


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


LOGS = listing(shape_of(AttemptLog))


async def logs(call: Call[NoQuery, None]) -> Answer:
    found = await found_run(call)
    if not call.principal.may(Right.PAYLOAD, found.task):
        raise Problem(403, f"{call.principal.name} needs the right {Right.PAYLOAD}")
    return Answer({"items": logs_view(found), "next": None})


async def why(call: Call[NoQuery, None]) -> Answer:
    found = await found_run(call)
    return Answer(why_view(await call.app.why(found.id), call.prefix + API))


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
        "changes_at": {"anyOf": [INSTANT, {"type": "null"}]},
        "facts": {"type": "array", "items": shape_of(Fact)},
    },
    "required": ["subject", "kind", "answer", "held", "changes_at", "facts"],
}
ROUTES: list[Route[Any, Any]] = [
    get(f"{API}/runs", "Runs by filter, a page at a time", Right.READ, runs, RUNS, Listed),
    get(
        f"{API}/runs/{{id}}",
        "One run; with wait, when it has ended",
        Right.READ,
        run,
        RUN,
        Waiting,
        also=(410,),
        conditions=(IF_NONE_MATCH,),
    ),
    get(f"{API}/runs/{{id}}/log", "What a run has logged, attempt by attempt", Right.READ, logs, LOGS),
    get(f"{API}/runs/{{id}}/result", "The result of a run", Right.READ, result, {"type": "object"}, also=(409,)),
    get(f"{API}/runs/{{id}}/why", "Why does it not run?", Right.READ, why, WHY),
    _write("cancel", "Cancel a run", cancel, {200: Changed, 202: Changed}),
    _write("pause", "Pause a run", pause, {200: Changed, 202: Changed}),
    _write("resume", "Resume a paused run", resume, {200: Changed}),
]
