"""Task: a named function and its policies. Calling a task calls the function; submitting a task makes a run."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from msgspec.structs import asdict

from rota.client.client import Client
from rota.client.handle import RunHandle
from rota.domain.decision import Decision, Reason
from rota.domain.fan import Failures
from rota.domain.guards import Join, Sliding, Unique
from rota.domain.intake import Options, Span
from rota.domain.policy import Lost, Retry
from rota.domain.trial import Trial
from rota.task.call import Call
from rota.task.chain import Chain
from rota.task.definition import Definition, definition_of, own_callback
from rota.task.fan_out import Each, Fanned, FanOut
from rota.task.kinds import check_using
from rota.task.submitter import Wait

C = ParamSpec("C")
"""The parameters of a direct call, with `ctx` if the function takes one."""
P = ParamSpec("P")
"""The parameters of a submit: those of a direct call without `ctx`."""
T_co = TypeVar("T_co", covariant=True)
"""What a direct call returns: a coroutine for an async function."""
R_co = TypeVar("R_co", covariant=True)
"""The result of a run."""
Q = ParamSpec("Q")
X = TypeVar("X")
R = TypeVar("R")
S = TypeVar("S")


class Bound(Generic[R_co]):
    """A task with its arguments, checked and encoded: for `app.submit_many`, schedules, plans, flows and chains."""

    def __init__(self, task: "Task[..., ..., Any, R_co]", call: Call) -> None:
        self.task = task
        self._call = call

    def __repr__(self) -> str:
        return f"<Bound {self.task.name} {self._call.args.decode()}>"

    async def submit(self) -> RunHandle[R_co]:
        """Make a run of this call. It is durable when `submit` returns."""
        definition = definition_of(self.task)
        return definition.handle(await definition.submitter.put(self._call))

    def submit_sync(self) -> RunHandle[R_co]:
        """The same as `submit`, from synchronous code; raises if an event loop runs here."""
        definition = definition_of(self.task)
        return definition.handle(definition.submitter.put_sync(self._call))

    @overload
    def __rshift__(self: "Bound[Iterable[X]]", following: Each[X, S]) -> Fanned[S]: ...
    @overload
    def __rshift__(self: "Bound[AsyncIterator[X]]", following: Each[X, S]) -> Fanned[S]: ...
    @overload
    def __rshift__(self, following: "Task[..., ..., Any, S] | Bound[S]") -> Chain[S]: ...
    @overload
    def __rshift__(self, following: "Sequence[Task[..., ..., Any, Any] | Bound[Any]]") -> Chain[list[Any]]: ...
    def __rshift__(self, following: Any) -> Any:
        """`a.bind(1) >> b >> [c, d]`: each call starts when the call before it has succeeded."""
        return Chain[Any](((self,),)) >> following


class Using(Generic[P, R_co]):
    """A task with options for the next submits: `resize.using(delay=60).submit("a.png")`."""

    def __init__(
        self,
        task: "Task[..., P, Any, R_co]",
        definition: Definition,
        options: Options,
        wait: Wait = None,
        connection: object | None = None,
    ) -> None:
        self._task = task
        self._definition = definition
        self._options = options
        self._wait = wait
        self._connection = connection

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """Make a run. It is durable when `submit` returns; with `connection`, once the transaction has committed."""
        call, submitter = self._definition.call(args, kwargs, self._options), self._definition.submitter
        if self._connection is not None:
            return self._definition.handle(await submitter.put_within(call, self._connection))
        return self._definition.handle(await submitter.put(call, self._wait))

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """The same as `submit`, from synchronous code. Without a `connection`, raises if an event loop runs here."""
        call, submitter = self._definition.call(args, kwargs, self._options), self._definition.submitter
        if self._connection is not None:
            return self._definition.handle(submitter.put_within_sync(call, self._connection))
        return self._definition.handle(submitter.put_sync(call, self._wait))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R_co]:
        """Return the task with these arguments and these options, for `app.submit_many`, schedules, plans and flows."""
        return Bound(self._task, self._definition.call(args, kwargs, self._options))

    def map(
        self: "Using[Concatenate[X, Q], R]",
        items: Iterable[X],
        *,
        failures: Failures = "stop",
        args: Mapping[str, Any] | None = None,
    ) -> Fanned[R]:
        """The same as `Task.map`, with these options."""
        return Fanned((), FanOut(self._task, self._options, failures, args, items))

    def each(
        self: "Using[Concatenate[X, Q], R]", *, failures: Failures = "stop", args: Mapping[str, Any] | None = None
    ) -> Each[X, R]:
        """The same as `Task.each`, with these options."""
        return Each(FanOut(self._task, self._options, failures, args))


class Task(Generic[C, P, T_co, R_co]):
    """Made by `@app.task`; still callable like its function, which is `task.fn`."""

    def __init__(self, fn: Callable[C, T_co], definition: Definition) -> None:
        self.fn = fn
        self.name = definition.name
        self.description = definition.description
        self.aliases = definition.aliases
        self.enabled = definition.spec.enabled
        self._definition = definition
        self._plain: Using[P, R_co] = Using(self, definition, Options())
        self.__name__ = self.name
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn

    def __repr__(self) -> str:
        return f"<Task {self.name}{self._definition.signature.parameters}>"

    def __call__(self, *args: C.args, **kwargs: C.kwargs) -> T_co:
        return self.fn(*args, **kwargs)

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """Make a run of this task. The run is durable when `submit` returns. Wrong arguments raise here, not in the
        worker."""
        return await self._plain.submit(*args, **kwargs)

    def submit_sync(self, *args: P.args, **kwargs: P.kwargs) -> RunHandle[R_co]:
        """The same as `submit`, from synchronous code; raises if an event loop runs here."""
        return self._plain.submit_sync(*args, **kwargs)

    async def try_(self, *args: P.args, **kwargs: P.kwargs) -> Trial:
        """Return what a submit with these arguments would answer now, guard by guard. The store judges; nothing
        changes. Wrong arguments raise."""
        definition = self._definition
        return await definition.submitter.try_put(definition.call(args, kwargs))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Bound[R_co]:
        """Return the task with these arguments, for `app.submit_many`, schedules, plans and flows."""
        return Bound(self, self._definition.call(args, kwargs))

    def map(
        self: "Task[..., Concatenate[X, Q], Any, R]",
        items: Iterable[X],
        *,
        failures: Failures = "stop",
        args: Mapping[str, Any] | None = None,
    ) -> Fanned[R]:
        """Fan out: `resize.map(paths) >> gather` makes a run for each of `items`, 100,000 at most, and one of `gather`,
        which gets the `Results` when all of them have ended.

        An item is the first argument, and `args` are the others. `failures` says how many runs may end without success:
        "stop" none, "collect" all of them, or a number. One too many fails the gather and cancels the other runs.
        """
        return Fanned((), FanOut(self, Options(), failures, args, items))

    def each(
        self: "Task[..., Concatenate[X, Q], Any, R]",
        *,
        failures: Failures = "stop",
        args: Mapping[str, Any] | None = None,
    ) -> Each[X, R]:
        """Fan out: in `find.bind(dir) >> resize.each() >> gather`, the items are what `find` returns or yields. The
        options are those of `map`."""
        return Each(FanOut(self, Options(), failures, args))

    @overload
    def __rshift__(self: "Task[..., ..., Any, Iterable[X]]", following: Each[X, S]) -> Fanned[S]: ...
    @overload
    def __rshift__(self: "Task[..., ..., Any, AsyncIterator[X]]", following: Each[X, S]) -> Fanned[S]: ...
    @overload
    def __rshift__(self, following: "Task[..., ..., Any, S] | Bound[S]") -> Chain[S]: ...
    @overload
    def __rshift__(self, following: "Sequence[Task[..., ..., Any, Any] | Bound[Any]]") -> Chain[list[Any]]: ...
    def __rshift__(self, following: Any) -> Any:
        """`a >> b`: a chain of calls; `a` is called without arguments."""
        return Chain[Any](((self,),)) >> following

    async def touch(self, *args: P.args, **kwargs: P.kwargs) -> Decision:
        """Report activity: make, move or keep the run of the key, as the task's `activity` says.

        The decision is true if a run exists for the key now; otherwise its `reason` says why not. A touch costs one
        round trip and never waits: if the store does not answer, the decision is false (`unavailable`). Wrong arguments
        still raise.
        """
        call = self._definition.touch_call(args, kwargs)
        if call is None:
            return Decision("", Reason.NO_ACTIVITY)
        return await self._definition.submitter.touch(call.to_touch())

    def using(
        self,
        *,
        delay: Span | None = None,
        at: datetime | None = None,
        expires: Span | datetime | None = None,
        priority: int | None = None,
        key: str | None = None,
        unique: Unique | None = None,
        within: Span | Sliding | None = None,
        join: Join | None = None,
        queue: str | None = None,
        timeout: Span | str | None = None,
        retry: Retry | None = None,
        lost: Lost | None = None,
        headers: Mapping[str, str] | None = None,
        id: str | None = None,
        on_success: "Task[..., ..., Any, Any] | str | None" = None,
        on_failure: "Task[..., ..., Any, Any] | str | None" = None,
        on_cancel: "Task[..., ..., Any, Any] | str | None" = None,
        wait: Wait = None,
        connection: object | None = None,
    ) -> Using[P, R_co]:
        """Options for the submits that follow.

        `delay` (seconds) or `at` (an aware datetime) says when the run is due. `expires` is a number of seconds after
        the due time, or an instant: a run that has not started by then never starts. A run with a higher `priority`
        starts first. `key` says what the run is about, `unique` which other run of the key it may not stand beside,
        `join` what becomes of an equal run that waits, and `within`, with `unique="done"`, for how many seconds a
        success keeps it out (7 days at most).
        `queue`, `timeout`, `retry` and `lost` go before those of the task; a `retry` replaces the task's with all its
        rules. `headers` (32 at most, 8 KiB) travel with the run, its retries and the runs that its handler submits.
        `id` is an idempotency key of 1 to 63 printable characters: the first submit makes the run, a later one with the
        same task and arguments answers that run, and one with others raises IdConflict, until a day after its end.
        `on_success`, `on_failure` and `on_cancel` are tasks that the end of the run calls, in place of the task's own.
        While the task has `max_pending` unfinished runs, a submit waits up to `wait` seconds for room (30 by default;
        False: not at all). `connection` is your own connection to the database of a PostgreSQL store: the run is put in
        the transaction that is open on `connection`, and a rollback removes the run.
        """
        options = Options(
            delay=delay,
            at=at,
            expires=expires,
            priority=priority,
            key=key,
            unique=unique,
            within=within,
            join=join,
            queue=queue,
            timeout=timeout,
            retry=retry,
            lost=lost,
            headers=headers,
            id=id,
            on_success=own_callback(self.name, "on_success", on_success),
            on_failure=own_callback(self.name, "on_failure", on_failure),
            on_cancel=own_callback(self.name, "on_cancel", on_cancel),
        )
        check_using(self.name, {**asdict(options), "wait": wait})
        return Using(self, self._definition, options, wait, connection)

    def handle(self, id: str) -> RunHandle[R_co]:
        """Return the handle of a run of this task that was submitted elsewhere."""
        return RunHandle(self._definition.submitter.client(), id, self._definition.signature.decode_result)


def handles_of(calls: Sequence[Bound[R]], decisions: Sequence[Decision]) -> list[RunHandle[R]]:
    """Return the handle of the run that each call made or joined, in order."""
    access: dict[Task[..., ..., Any, R], tuple[Client, Callable[[bytes], Any]]] = {}
    handles: list[RunHandle[R]] = []
    for bound, decision in zip(calls, decisions, strict=True):
        if bound.task not in access:
            definition = definition_of(bound.task)
            access[bound.task] = definition.submitter.client(), definition.signature.decode_result
        client, decode = access[bound.task]
        handles.append(RunHandle(client, decision.run, decode, decision))
    return handles
