"""Enqueueing: from a Django task and its arguments to a run in the store."""

import time
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation

from rota.app.core import core_of
from rota.client.client import Client
from rota.client.handle import accept
from rota.django.adoption import adopt, retry_of, run_headers
from rota.django.conf import conf, in_tests
from rota.django.project import app
from rota.django.results import instant, new_result
from rota.django.rota_task import USING, RotaTask
from rota.django.tasks_api import AnyResult, AnyTask, normalize_json
from rota.domain import codec
from rota.domain.decision import Decision
from rota.domain.intake import Options
from rota.domain.run import NewRun, Run
from rota.engine.context import context_here
from rota.errors import NotRunning, RunNotFound
from rota.store import RunQuery
from rota.task import definition_of
from rota.task.call import Call
from rota.task.ids import new_id


class Enqueued:
    """One `enqueue`: its task and arguments, and the run that they make."""

    def __init__(self, task: AnyTask, args: Any, kwargs: Any) -> None:
        self.task = task
        self.args: list[Any] = cast("list[Any]", normalize_json(list(args)))
        self.kwargs: dict[str, Any] = cast("dict[str, Any]", normalize_json(dict(kwargs)))
        self.known = adopt(app(), task)
        self.id = new_id()
        self.decision: Decision | None = None

    def call(self, own_id: bool = False) -> Call:
        """Return the call. With `own_id`, the store remembers the id of its run for a day after its end."""
        here = context_here.get()
        headers = run_headers(len(self.args), {} if here is None else here.headers)
        options = _options(self.task, self.known.task)
        if headers is not None:
            options["headers"] = headers
        if own_id:
            options["id"] = self.id
        return definition_of(self.known.own).call(tuple(self.args), self.kwargs, Options(**options))

    def run(self, own_id: bool = False) -> NewRun:
        """Return the run; every call makes the same one. A task with `once=` needs the store's time: see `call`."""
        return self.call(own_id).to_run(self.id)

    def result(self, alias: str) -> AnyResult:
        joined = self.id if self.decision is None else self.decision.run
        return new_result(self.task, joined, self.args, self.kwargs, alias)


def _options(task: AnyTask, base: AnyTask) -> dict[str, Any]:
    """Return what this `enqueue` says beyond its task: the differences that `using` made."""
    found: dict[str, Any] = {}
    if task.priority != base.priority:
        found["priority"] = int(task.priority)
    if task.queue_name != base.queue_name:
        found["queue"] = task.queue_name
    if task.run_after is not None:
        found["at"] = instant(task.run_after)
    if isinstance(task, RotaTask) and isinstance(base, RotaTask) and task is not base:
        given = {name: getattr(task, name) for name in USING if getattr(task, name) != getattr(base, name)}
        if "max_attempts" in given:
            given["retry"] = retry_of(task.module_path, given.pop("max_attempts")).without_rules()
        found |= given
    return found


def enqueue(made: Enqueued) -> None:
    """Put the run into the store, from synchronous code; in the transaction, if one is open."""
    from rota.django.transactions import alias_of_transaction, enqueue_within

    alias = alias_of_transaction()
    if alias is None:
        put_now(made)
    else:
        enqueue_within(made, alias)


def put_now(made: Enqueued) -> None:
    made.decision = _call_sync(lambda: _put(made))


async def aenqueue(made: Enqueued) -> None:
    """Put the run into the store, from a coroutine. All loops of the process share one open store. A transaction can be
    open in the thread that makes the database calls of this coroutine."""
    from rota.django.transactions import alias_of_transaction

    if await sync_to_async(alias_of_transaction)() is not None:
        await sync_to_async(enqueue)(made)
    else:
        made.decision = await app().portal.acall(lambda: _put(made))


def found_run(id: str) -> Run | None:
    """Return the run of this id, which may still be in the outbox; None if neither knows it."""
    found: Run | None = _call_sync(lambda: _read(id))
    return found or _in_the_outbox(id)


async def afound_run(id: str) -> Run | None:
    return await app().portal.acall(lambda: _read(id)) or await sync_to_async(_in_the_outbox)(id)


def _in_the_outbox(id: str) -> Run | None:
    if in_tests() or conf().transactions in ("on_commit", "off"):
        return None
    from rota.django import outbox

    run = outbox.read(id, outbox.outbox_alias())
    if run is None:
        return None
    body, now = codec.decode(run.body), time.time()
    return Run(
        id=run.id,
        task=run.task,
        priority=run.priority,
        queue=run.queue,
        created_at=now,
        due_at=run.due_at(now),
        args=bytes(body.args),
        headers=body.headers or {},
    )


async def _put(made: Enqueued) -> Decision:
    call, client = made.call(), _client()
    run = call.to_run(made.id) if call.once is None else call.to_run_at(await client.now())
    return accept(await client.submit(run))


async def _read(id: str) -> Run | None:
    page = await _client().runs(RunQuery(ids=[id]))
    return page.runs[0] if page.runs else None


def _client() -> Client:
    return core_of(app()).noticing_client()


def _call_sync(work: Any) -> Any:
    try:
        return app().portal.call(work)
    except NotRunning as error:
        raise SynchronousOnlyOperation(f"{error}: aenqueue and aget_result") from None
    except RunNotFound:
        return None
