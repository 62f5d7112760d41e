"""Task: a named function and its policies. Calling it calls the function; submitting it makes a run."""

import inspect
import os
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, Generic, ParamSpec, TypeVar

from msgspec import Struct

from rota.client import Client
from rota.domain.arguments import Signature, type_hints
from rota.domain.decision import Decision
from rota.domain.ids import uuid7
from rota.domain.intake import Options, Span, check_name, check_priority, new_run
from rota.domain.policy import Lost, Policy, Retry
from rota.domain.run import NewRun
from rota.engine.context import Context
from rota.engine.handler import ExecutorName, Handler
from rota.errors import InvalidArguments, InvalidOptions
from rota.handle import RunHandle, accept

C = ParamSpec("C")
"""The parameters as called, with `ctx` if the function takes one."""
P = ParamSpec("P")
"""The parameters as submitted, without it."""
T_co = TypeVar("T_co", covariant=True)
"""What a call returns: a coroutine for async functions."""
R_co = TypeVar("R_co", covariant=True)
"""What a run results in."""


class TaskOptions(Struct, frozen=True, kw_only=True):
    """What `@app.task(...)` may say; each is checked when the task is defined."""

    name: str | None = None
    description: str | None = None
    retry: Retry = Retry()
    timeout: float | None = None
    lost: Lost = "retry"
    max_losses: int = 5
    priority: int = 0


class Bound(Struct, Generic[R_co], frozen=True):
    """A task with its arguments, checked and encoded: ready to be submitted, alone or with others."""

    task: "Task[..., ..., Any, R_co]"
    args: bytes
    options: Options = Options()

    def to_run(self) -> NewRun:
        """A new run for this call; every call of this method makes another."""
        try:
            return new_run(
                id=uuid7(time.time_ns() // 1_000_000, os.urandom(10)),
                task=self.task.name,
                args=self.args,
                policy=self.task.policy,
                options=self.options,
                priority=self.task.priority,
            )
        except TypeError as error:
            raise InvalidArguments(str(error)) from None
        except ValueError as error:
            raise InvalidOptions(str(error)) from None


class Using(Generic[P, R_co]):
    """A task with options for the next submits: `resize.using(delay=60).submit("a.png")`."""

    def __init__(self, task: "Task[..., P, Any, R_co]", options: Options) -> None:
        self._task = task
        self._options = options

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """Durable when this returns."""
        return await self._task.put(self.bind(*args, **kwargs))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R_co]:
        return Bound(self._task, self._task.encode(args, kwargs), self._options)


class Task(Generic[C, P, T_co, R_co]):
    """Made by `@app.task`; still callable like its function, which is `task.fn`."""

    def __init__(self, fn: Callable[C, T_co], options: TaskOptions, client: Callable[[], Client]) -> None:
        self.fn = fn
        self.name = str(options.name or getattr(fn, "__name__", ""))
        check_definition(fn, self.name)
        self.description = options.description or inspect.getdoc(fn) or ""
        self.takes_context = takes_context(fn)
        self.signature = Signature(fn, skip=1 if self.takes_context else 0)
        self.retry = options.retry
        try:
            self.policy = Policy(options.retry, options.timeout, options.lost, options.max_losses).frozen()
            self.priority = check_priority(options.priority)
        except ValueError as error:
            raise InvalidOptions(f"task {self.name}: {error}") from None
        self._client = client
        self.__name__ = self.name
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

    def __repr__(self) -> str:
        return f"<Task {self.name}{self.signature.parameters}>"

    def __call__(self, *args: C.args, **kwargs: C.kwargs) -> T_co:
        return self.fn(*args, **kwargs)

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """Make a run of this task; durable when this returns. Wrong arguments raise here, not in the worker."""
        return await self.put(Bound(self, self.encode(args, kwargs)))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R_co]:
        """The task with these arguments, for `app.submit_many`."""
        return Bound(self, self.encode(args, kwargs))

    def using(
        self,
        *,
        delay: Span | None = None,
        at: datetime | None = None,
        expires: Span | datetime | None = None,
        priority: int | None = None,
    ) -> Using[P, R_co]:
        """Options for the submits that follow.

        `delay` (seconds) or `at` (an aware datetime) says when the run is due. With `expires`, a run that has not
        started so many seconds after it was due, or by that instant, never starts. Higher `priority` goes first.
        """
        return Using(self, Options(delay=delay, at=at, expires=expires, priority=priority))

    def handle(self, id: str) -> RunHandle[R_co]:
        """The handle of a run of this task that was submitted elsewhere."""
        return RunHandle(self._client(), id, self.signature.decode_result)

    async def put(self, bound: Bound[R_co]) -> RunHandle[R_co]:
        run = bound.to_run()
        store = await self._client().store()
        return self.handle_for(accept((await store.put([run])).items[0]))

    def handle_for(self, decision: Decision) -> RunHandle[R_co]:
        return RunHandle(self._client(), decision.run, self.signature.decode_result, decision)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        try:
            return self.signature.encode(args, kwargs)
        except (TypeError, ValueError) as error:
            raise InvalidArguments(str(error)) from None

    @property
    def executor(self) -> ExecutorName:
        return "loop" if inspect.iscoroutinefunction(self.fn) else "thread"

    def handler(self) -> Handler:
        return Handler(
            name=self.name,
            fn=self.fn,
            signature=self.signature,
            executor=self.executor,
            takes_context=self.takes_context,
            retry=self.retry,
        )


def check_definition(fn: Callable[..., Any], name: str) -> None:
    """A task is a function of a module: a method would need an object that no worker has."""
    if not callable(fn) or isinstance(fn, type):
        raise InvalidOptions(f"{fn!r} is not a function; decorate a plain or async function with @app.task")
    try:
        check_name(name)
    except ValueError as error:
        raise InvalidOptions(f"{error}; give name=") from None
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise InvalidOptions(f"{name} is a generator; a task returns one result")
    parameters = list(inspect.signature(fn).parameters)
    if inspect.ismethod(fn) or (parameters and parameters[0] in ("self", "cls")):
        raise InvalidOptions(f"{name} is a method; a task is a function, so that any worker can call it")


def takes_context(fn: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(fn).parameters)
    return bool(parameters) and type_hints(fn).get(parameters[0]) is Context
