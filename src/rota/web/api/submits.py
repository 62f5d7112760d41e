"""Runs: submit one or many."""

import hashlib
import re
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from rota.client.refusals import retry_at
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Join, Unique
from rota.domain.intake import Options
from rota.domain.policy import Lost, Retry
from rota.domain.run import NewRun
from rota.errors import Refused
from rota.views.values import iso
from rota.web.api.runs import MOST_WAIT, ended_by, shown
from rota.web.inputs import decoded
from rota.web.problems import Flaw, Problem, problem_of
from rota.web.rights import Right
from rota.web.routes import API, Answer, Call, Moment, NoQuery, Route, Text, write
from rota.web.submitting import call_named, with_parameters

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


class Batch(Struct, frozen=True, forbid_unknown_fields=True):
    """`runs`: each as the body of `POST /runs`. Each is read for itself, so that one that does not fit harms no
    other."""

    runs: Annotated[list[msgspec.Raw], Meta(max_length=BATCH)]


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
    items: list[BatchItem]


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
    items: list[BatchItem | None] = []
    runs: list[NewRun] = []
    for place, given in enumerate(call.body.runs):
        try:
            body = decoded(given, NewRunBody, f"/runs/{place}")
            made = await call_named(call, body.task, body.args, body.options(), body.unknown_ok)
            runs.append(await made.run(call.client))
            items.append(None)
        except Problem as misfit:
            problem = await with_parameters(call.app, misfit, None)
            errors = [Flaw(_within(place, flaw.pointer), flaw.detail) for flaw in problem.errors]
            items.append(BatchItem(problem.status, reason=problem.reason, detail=problem.detail, errors=errors))
    decisions = iter((await call.client.put(runs)).items if runs else [])
    return Answer(BatchAnswer([_item(next(decisions)) if item is None else item for item in items]))


def _within(place: int, pointer: str) -> str:
    return pointer if pointer.startswith(f"/runs/{place}") else f"/runs/{place}{pointer}"


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
