"""Runs: submit one or many."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import astuple, replace

from rota.client.client import Client
from rota.client.refusals import retry_at
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Join, Unique
from rota.domain.intake import Options
from rota.domain.policy import Lost, Retry
from rota.domain.run import NewRun
from rota.errors import Refused, RotaError
from rota.store import Reply
from rota.task import Call as TaskCall
from rota.task.call import runs_of
from rota.views.values import iso
from rota.web.api.runs import MOST_WAIT, ended_by, shown
from rota.web.inputs import decoded
from rota.web.problems import Flaw, Problem, problem_of
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Moment, NoQuery, Route, Text, write
from rota.web.submitting import Known, call_named, known_tasks, run_at, trace_of, traced, with_parameters

BATCH = 1000
PREFER = "Prefer"
IDEMPOTENCY_KEY = "Idempotency-Key"
KEY_LIMIT = 200
"""Characters of an Idempotency-Key."""
_WAIT = re.compile(r"\bwait=(\d{1,4})\b")


class RunBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to submit. `args` are the arguments by name. `unknown_ok`: accept a task that no worker has published."""

    args: dict[str, Any] = {}
    id: Annotated[str, Meta(min_length=1, max_length=63)] | None = None
    key: Text | None = None
    queue: Text | None = None
    priority: Annotated[int, Meta(ge=-100, le=100)] | None = None
    delay: Annotated[float, Meta(ge=0)] | None = None
    at: Moment | None = None
    expires: float | Moment | None = None
    unique: Unique | None = None
    within: Annotated[float, Meta(gt=0)] | None = None
    join: Join | None = None
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
            within=self.within,
            join=self.join,
            timeout=self.timeout,
            retry=None if self.retry is None else Retry(self.retry),
            lost=self.lost,
            headers=self.headers,
            id=self.id,
        )


class NewRunBody(RunBody, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What to submit, and to which task."""

    task: Annotated[str, Meta(min_length=1, max_length=200)]


class TriedBody(RunBody, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What `POST /runs` takes. `task`, if it is given, is that of the path."""

    task: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """`runs`: each as the body of `POST /runs`. Each is read for itself, so that one that does not fit harms no
    other: a batch is never `atomic`."""

    runs: Annotated[list[msgspec.Raw], Meta(max_length=BATCH)]
    atomic: bool = False


_ALL = msgspec.json.Decoder(list[NewRunBody])


class Submitted(Struct, frozen=True, omit_defaults=True):
    """The answer to a submit. `created`: False if the submit joined a run that was there. `ended`: with `Prefer:
    wait=N`, the run, if it ended in that time; the credential needs the right to read."""

    run: str
    reason: str
    created: bool
    ended: dict[str, Any] | None = None


class BatchItem(Struct, frozen=True, omit_defaults=True):
    """The answer to one run of a batch, in the order of the batch."""

    status: int
    run: str | None = None
    reason: str | None = None
    detail: str | None = None
    errors: list[Flaw] = []


class BatchAnswer(Struct, frozen=True):
    """`next` is null: a batch is answered as a whole."""

    items: list[BatchItem]
    next: None
    now: str


async def submit(call: Call[NoQuery, NewRunBody]) -> Answer:
    options = call.body.options()
    if (given := call.request.headers.get(IDEMPOTENCY_KEY)) is not None:
        options = replace(options, id=_id_for(given, call))
    made = await call_named(call, call.body.task, call.body.args, options, call.body.unknown_ok)
    run = await made.run(call.client)
    decision = await call.client.submit(run)
    if not decision:
        problem = _refused(decision)
        if (at := await retry_at(call.client, run, decision.reason)) is not None:
            problem.extra["retry_at"] = iso(at)
        raise problem
    answer = Submitted(decision.run, str(decision.reason), decision.reason is Reason.ACCEPTED)
    headers = {"Location": f"{call.prefix}{API}/runs/{decision.run}"}
    if decision.run == options.id and not answer.created:
        headers["Idempotency-Replayed"] = "true"
    status = 201 if answer.created else 200
    if (seconds := _preferred_wait(call)) and call.principal.may(Right.READ, call.body.task):
        ended = await ended_by(call, await call.client.run(decision.run), seconds)
        if ended.state.final:
            answer, status = replace(answer, ended=shown(call, ended)), 200
            headers["Preference-Applied"] = f"wait={seconds}"
    return Answer(answer, status, headers)


def _preferred_wait(call: Call[Any, Any]) -> int:
    """Return the seconds of `Prefer: wait=N` (RFC 7240), at most MOST_WAIT; 0 without it. A preference that cannot
    be read is ignored, as the RFC asks."""
    found = _WAIT.search(call.request.headers.get(PREFER, ""))
    return 0 if found is None else min(int(found[1]), int(MOST_WAIT))


def _id_for(key: str, call: Call[NoQuery, NewRunBody]) -> str:
    """Return the id of the run that this credential makes with this key. Two credentials may use one key."""
    if call.body.id is not None:
        raise Problem(422, f"give an id or {IDEMPOTENCY_KEY}, not both")
    if not 0 < len(key) <= KEY_LIMIT or not key.isprintable():
        raise Problem(422, f"{IDEMPOTENCY_KEY}: from 1 to {KEY_LIMIT} printable characters")
    return hashlib.sha256(f"{call.principal.name}\0{key}".encode(errors="replace")).hexdigest()[:48]


async def submit_batch(call: Call[NoQuery, Batch]) -> Answer:
    """Put all good runs of the batch in one step. A bad run harms no other."""
    if call.body.atomic:
        words = "a batch is not atomic: each run has an answer of its own"
        raise Problem(422, words, errors=[Flaw("/atomic", words)])
    bodies = _bodies(call.body.runs)
    known = await known_tasks(call, {body.task for body in bodies if not isinstance(body, Problem)})
    calls = _calls(bodies, known, trace_of(call))
    made = await _runs(call.client, calls)
    runs = [run for run in made if not isinstance(run, Problem)]
    reply = await call.client.put(runs) if runs else Reply[Decision](await call.client.now(), [])
    decisions = iter(reply.items)
    items = [
        await _misfit(call, place, run) if isinstance(run, Problem) else _item(next(decisions))
        for place, run in enumerate(made)
    ]
    return Answer(BatchAnswer(items, None, iso(reply.now)))


def _bodies(given: Sequence[msgspec.Raw]) -> Sequence[NewRunBody | Problem]:
    """Return what to submit, all read at once; or one by one, so that each has its own answer, if one does not fit."""
    try:
        return _ALL.decode(b"[%b]" % b",".join(given))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [_body(place, each) for place, each in enumerate(given)]


def _body(place: int, given: msgspec.Raw) -> NewRunBody | Problem:
    try:
        return decoded(given, NewRunBody, f"/runs/{place}")
    except Problem as problem:
        return problem
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Problem(400, "the run is not JSON", errors=[Flaw(f"/runs/{place}", "this is not JSON")])


def _calls(
    bodies: Sequence[NewRunBody | Problem], known: Mapping[str, Known | Problem], trace: dict[str, str]
) -> list[TaskCall | Problem]:
    """Return the call of each run, or what is wrong with it. Runs with the options of the run before share them, so
    that the options are checked once."""
    calls: list[TaskCall | Problem] = []
    last: tuple[object, ...] = ()
    options = Options()
    for body in bodies:
        task = body if isinstance(body, Problem) else known[body.task]
        if isinstance(body, Problem) or isinstance(task, Problem):
            calls.append(cast("Problem", task))
            continue
        given = astuple(body)[1:-1]  # all but the arguments and the task
        if given != last:
            last, options = given, traced(body.options(), trace)
        try:
            calls.append(task.call(body.args, options, body.unknown_ok))
        except Problem as problem:
            calls.append(problem)
    return calls


async def _runs(client: Client, calls: Sequence[TaskCall | Problem]) -> Sequence[NewRun | Problem]:
    """Return the run of each call, all made at once; or one by one if something is wrong with one."""
    good = [call for call in calls if not isinstance(call, Problem)]
    now = await client.now() if any(call.once is not None for call in good) else None
    if now is None and len(good) == len(calls):
        try:
            return runs_of(good)
        except RotaError:
            now = 0.0
    return [call if isinstance(call, Problem) else _run(call, now or 0.0) for call in calls]


def _run(call: TaskCall, now: float) -> NewRun | Problem:
    try:
        return run_at(call, now)
    except Problem as problem:
        return problem


async def _misfit(call: Call[NoQuery, Batch], place: int, misfit: Problem) -> BatchItem:
    problem = await with_parameters(call.app, misfit, None)
    errors = [Flaw(_within(place, flaw.pointer), flaw.detail) for flaw in problem.errors]
    return BatchItem(problem.status, reason=problem.reason, detail=problem.detail, errors=errors)


def _within(place: int, pointer: str) -> str:
    return pointer if pointer.startswith(f"/runs/{place}") else f"/runs/{place}{pointer}"


def _item(decision: Decision) -> BatchItem:
    if decision.reason is Reason.ACCEPTED:
        return BatchItem(201, decision.run, "accepted")
    if decision:
        return BatchItem(200, decision.run, str(decision.reason))
    problem = _refused(decision)
    return BatchItem(problem.status, decision.run or None, str(decision.reason), problem.detail)


def _refused(decision: Decision) -> Problem:
    if decision.reason is Reason.QUEUE_FULL:
        return Problem(429, "the queue of the task is full", reason="queue_full", headers={"Retry-After": "1"})
    if decision.reason is Reason.ID_CONFLICT:
        words = "a run with this id or Idempotency-Key exists, and its task or its arguments differ"
        return Problem(422, words, reason=str(decision.reason))
    return problem_of(Refused(decision))


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
        conditions=(IDEMPOTENCY_KEY, PREFER),
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
]
