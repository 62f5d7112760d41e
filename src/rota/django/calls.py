"""Calls: how a worker calls the function of a Django task. The signals of django.tasks are sent from the thread that
makes the database calls of the function."""

import inspect
from collections.abc import Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.utils import timezone

from rota.django.results import result_of
from rota.django.rota_task import RotaTask
from rota.django.tasks_api import (
    AnyResult,
    AnyTask,
    TaskContext,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from rota.domain.kinds import is_number
from rota.domain.lifecycle import settlement_of
from rota.domain.policy import FAR, Retry
from rota.domain.run import State
from rota.domain.settlement import Finish
from rota.engine.context import Context
from rota.engine.outcomes import failure, raised

WAIT = "_rota_wait"
"""The attribute of an exception that holds what `backoff` answered."""


class AttemptsRetry(Retry, frozen=True):
    """The retry of `max_attempts` and `backoff`, whose answer comes with the exception."""

    def __post_init__(self) -> None:
        """Only `limit` is ever given, and `adoption.retry_of` has checked it."""

    def for_error(self, error: BaseException) -> Retry:
        if hasattr(error, WAIT):
            return self.answered(getattr(error, WAIT))
        return super().for_error(error)


def handler_for(task: AnyTask) -> Callable[..., Any]:
    """Return the function that workers call for `task`. It takes the arguments of the task's function by the same
    names; their annotations are not read, because a Django task gets plain JSON values."""
    handler: Callable[..., Any]
    if inspect.iscoroutinefunction(task.func):

        async def call_async(*args: Any, **kwargs: Any) -> Any:
            return await _awaited(task, args, kwargs)

        handler = call_async
    else:

        def call(*args: Any, **kwargs: Any) -> Any:
            return _called(task, args, kwargs)

        handler = call
    parameters = list(inspect.signature(task.func).parameters.values())[int(task.takes_context) :]
    plain = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
    setattr(handler, "__signature__", plain)  # noqa: B010
    handler.__annotations__ = {p.name: Any for p in parameters}
    handler.__name__ = task.func.__name__
    handler.__doc__ = task.func.__doc__
    if isinstance(task, RotaTask) and task.executor == "process":
        from rota.django import children as children  # the worker looks the name up there before a child does

        handler.__module__, handler.__qualname__ = "rota.django.children", task.module_path
    else:
        handler.__module__, handler.__qualname__ = task.func.__module__, task.func.__qualname__
    return handler


def _called(task: AnyTask, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = _Call(task)
    call.begin()
    try:
        value = normalize_json(task.func(*call.with_context(args), **kwargs))
    except BaseException as error:
        call.fail(error)  # inside the except block: receivers log the traceback
        raise
    call.succeed(value)
    return value


async def _awaited(task: AnyTask, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    call = _Call(task)
    if call.heard(task_started):
        await sync_to_async(call.begin)()
    try:
        value = normalize_json(await task.func(*call.with_context(args), **kwargs))
    except BaseException as error:
        if call.heard(task_finished) and not isinstance(error, GeneratorExit):
            await sync_to_async(call.fail)(error)
        else:
            call.decide(error)
        raise
    if call.heard(task_finished):
        await sync_to_async(call.succeed)(value)
    return value


class _Call:
    """One call of a task: its result so far, and the signals about it."""

    def __init__(self, task: AnyTask) -> None:
        self._task = task
        self._run = Context.current().run
        self.result: AnyResult = result_of(self._run, task, task.backend)
        self._sender = type(task.get_backend())

    def with_context(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return (TaskContext(task_result=self.result), *args) if self._task.takes_context else args

    def heard(self, signal: Any) -> bool:
        """Return whether somebody listens: a hop to a thread for nobody would cost more than a short task."""
        return bool(signal.has_listeners(self._sender))

    def begin(self) -> None:
        task_started.send_robust(sender=self._sender, task_result=self.result)

    def succeed(self, value: object) -> None:
        self._end(TaskResultStatus.SUCCESSFUL)
        object.__setattr__(self.result, "_return_value", value)
        task_finished.send_robust(sender=self._sender, task_result=self.result)

    def fail(self, error: BaseException) -> None:
        """Say that the task has finished, if no attempt follows."""
        state = self.decide(error)
        if state is None:
            return
        if state is State.FAILED:
            self._end(TaskResultStatus.FAILED)
            from rota.django.results import error_of

            self.result.errors.append(error_of(failure(error)))
        else:
            self._end(TaskResultStatus.SUCCESSFUL)
        task_finished.send_robust(sender=self._sender, task_result=self.result)

    def decide(self, error: BaseException) -> State | None:
        """Ask `backoff`, and return in which state the run ends; None if it is queued again."""
        retry: Retry = self._run.policy.retry
        backoff = self._task.backoff if isinstance(self._task, RotaTask) else None
        if backoff is not None and isinstance(error, Exception) and not self._run.policy.own_retry:
            retry = AttemptsRetry(retry.limit)
            setattr(error, WAIT, _checked(backoff(error, self.result)))
        outcome = raised(error, retry)
        action = settlement_of(self._run, outcome).action
        return action.state if isinstance(action, Finish) else None

    def _end(self, status: TaskResultStatus) -> None:
        object.__setattr__(self.result, "status", status)
        object.__setattr__(self.result, "finished_at", timezone.now())


def _checked(wait: float | None) -> float | None:
    if wait is None or (is_number(wait) and 0 <= wait <= FAR):
        return wait
    raise ValueError(f"backoff returned {wait!r}: a number of seconds from 0, or None for no more attempts")
