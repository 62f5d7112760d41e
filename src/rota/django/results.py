"""Results: a run as the TaskResult of django.tasks."""

import builtins
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.conf import settings
from django.utils import timezone

import rota
from rota.django.tasks_api import AnyResult, AnyTask, TaskError, TaskResult, TaskResultStatus
from rota.domain.failure import Failure
from rota.domain.run import Run, State

STATUS = {
    State.QUEUED: TaskResultStatus.READY,
    State.PAUSED: TaskResultStatus.READY,
    State.RUNNING: TaskResultStatus.RUNNING,
    State.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    State.FAILED: TaskResultStatus.FAILED,
    State.CANCELLED: TaskResultStatus.FAILED,
}
NOT_CALLED = ("released", "unbindable")
"""The outcomes of claims that called no function."""
NOT_KEPT = "not-kept"
"""Stands for the worker of an attempt that the store no longer has: a store keeps the last 20."""


def result_of(run: Run, task: AnyTask, backend: str) -> AnyResult:
    """Return `run`, a run of `task`, as Django shows it."""
    from rota.django.adoption import adopted

    known = adopted(run.task)
    args, kwargs = ([], {}) if known is None else known.split(run.args, run.headers)
    calls = [attempt for attempt in run.attempts if attempt.outcome not in NOT_CALLED]
    claims = [attempt.claimed_at for attempt in calls]
    workers = [attempt.worker for attempt in calls]
    if run.state is State.RUNNING and run.claimed_at is not None:
        claims.append(run.claimed_at)
        workers.append(run.worker or "")
    counted = run.failures + run.losses + (run.state in (State.RUNNING, State.SUCCEEDED))
    workers = [NOT_KEPT] * (counted - len(workers)) + workers
    result = new_result(task, run.id, args, kwargs, backend)
    for name, value in {
        "status": STATUS[run.state],
        "enqueued_at": moment(run.created_at),
        "started_at": moment(min(claims, default=None)),
        "last_attempted_at": moment(max(claims, default=None)),
        "finished_at": moment(run.finished_at),
        "errors": _errors(run),
        "worker_ids": workers,
        "_return_value": None if run.result is None else msgspec.json.decode(run.result),
    }.items():
        object.__setattr__(result, name, value)
    return result


def new_result(task: AnyTask, id: str, args: Any, kwargs: Any, backend: str) -> AnyResult:
    """Return the result of a run that was just enqueued."""
    return TaskResult(
        task=task,
        id=id,
        status=TaskResultStatus.READY,
        enqueued_at=timezone.now(),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=backend,
        errors=[],
        worker_ids=[],
    )


def moment(at: float | None) -> datetime | None:
    """Return an instant as the project writes it: aware, or in TIME_ZONE without a zone if USE_TZ is False."""
    if at is None:
        return None
    aware = datetime.fromtimestamp(at, UTC)
    return aware if settings.USE_TZ else timezone.make_naive(aware, timezone.get_default_timezone())


def instant(at: datetime) -> datetime:
    """Return a `run_after` as an aware datetime: one without a zone is in TIME_ZONE."""
    return at if timezone.is_aware(at) else timezone.make_aware(at, timezone.get_default_timezone())


def error_of(failure: Failure) -> TaskError:
    """Return the failure of a call. Its class can be imported by the path."""
    return TaskError(exception_class_path=_path(failure.type), traceback=failure.traceback or str(failure))


def _errors(run: Run) -> list[TaskError]:
    errors = [
        error_of(attempt.error) if attempt.error else _told("rota.LeaseLost", f"worker {attempt.worker} was lost")
        for attempt in run.attempts
        if attempt.error or attempt.outcome == "lost"
    ]
    if run.state is State.CANCELLED:
        errors.append(_told("rota.RunCancelled", f"{run.reason or 'cancelled'}{f': {run.note}' if run.note else ''}"))
    elif run.state is State.FAILED and not errors:
        errors.append(error_of(run.error or Failure("RotaError", str(run.reason or "failed"))))
    return errors


def _told(path: str, words: str) -> TaskError:
    return TaskError(exception_class_path=path, traceback=words)


def _path(kind: str) -> str:
    if "." in kind:
        return kind
    if isinstance(getattr(builtins, kind, None), type):
        return f"builtins.{kind}"
    return f"rota.{kind}" if kind in rota.__all__ else "rota.RotaError"
