"""What an app defines: its tasks and its flows, and what follows from them before anything runs."""

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

from msgspec.structs import replace

from rota.client.client import Client
from rota.client.portal import Portal
from rota.domain.flow import OnFailure
from rota.domain.once import Once, check_once
from rota.domain.period import Period
from rota.domain.results import FailOn, check_fail_on
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.domain.triggers import Trigger
from rota.domain.written import Formats
from rota.engine.context import Context
from rota.errors import DuplicateTask, InvalidOptions
from rota.flow import Flow, StepArgs
from rota.schedules.deadlines import deadlines
from rota.settings import Settings
from rota.task import Definition, Submitter, Task, TaskOptions, definition_of, trigger_of
from rota.task.kinds import check_options_of

P = ParamSpec("P")
R = TypeVar("R")
Coro = Coroutine[Any, Any, R]


class Decorator(Protocol):
    """`@app.task(...)`: the four shapes a task function may have."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[Context, P], Coro[R]], /
    ) -> Task[Concatenate[Context, P], P, Coro[R], R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coro[R]], /) -> Task[P, P, Coro[R], R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[Concatenate[Context, P], P, R, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Task[P, P, R, R]: ...


class Definitions:
    """The part of an app that its code speaks to while it is imported."""

    settings: Settings
    portal: Portal
    _client: Client

    def __init__(self, fail_on: FailOn | None = None) -> None:
        try:
            self.fail_on = check_fail_on(fail_on)
        except TypeError as error:
            raise InvalidOptions(str(error)) from None
        self.tasks: dict[str, Task[..., ..., Any, Any]] = {}
        self.flows: dict[str, Flow] = {}
        self._submitter = Submitter(lambda: self._client, lambda: self.portal)
        self.formats = Formats()
        """How this app writes its periods, by the `format` of those that its code names."""

    @overload
    def task(
        self, fn: Callable[Concatenate[Context, P], Coro[R]], /
    ) -> Task[Concatenate[Context, P], P, Coro[R], R]: ...
    @overload
    def task(self, fn: Callable[P, Coro[R]], /) -> Task[P, P, Coro[R], R]: ...
    @overload
    def task(self, fn: Callable[Concatenate[Context, P], R], /) -> Task[Concatenate[Context, P], P, R, R]: ...
    @overload
    def task(self, fn: Callable[P, R], /) -> Task[P, P, R, R]: ...
    @overload
    def task(self, **options: Unpack[TaskOptions]) -> Decorator: ...
    def task(self, fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        """Define a task: `@app.task`, or `@app.task(retry=Retry(5), timeout=30)`."""

        def define(fn: Callable[..., Any]) -> Task[..., ..., Any, Any]:
            name = str(options.get("name") or getattr(fn, "__name__", fn))
            check_options_of(name, options)
            return self._add(fn, self.settings.override(name).over(cast("TaskOptions", options)), self.fail_on)

        return define if fn is None else define(fn)

    def _add(
        self, fn: Callable[..., Any], options: TaskOptions, fail_on: FailOn | None = None
    ) -> Task[..., ..., Any, Any]:
        definition = Definition(fn, options, self._submitter, self.settings.tz, fail_on)
        task: Task[..., ..., Any, Any] = Task(fn, definition)
        for name in (task.name, *task.aliases):
            if name in self.names():
                raise DuplicateTask(
                    f"two functions are named {name}; give one of them name=, so that runs find the right one"
                )
        try:
            self.formats.learn(definition.once)
        except ValueError as error:
            raise InvalidOptions(f"task {task.name}: once: {error}") from None
        definition.schedule(self.settings.tz, self.settings.name)  # raises if the schedule cannot be made
        self.tasks[task.name] = task
        return task

    def flow(
        self,
        name: str,
        *,
        once: Once,
        recheck: Trigger | str | None = None,
        on_failure: OnFailure = "block",
        description: str = "",
        fail_on: FailOn | None = None,
        args: StepArgs = None,
    ) -> Flow:
        """Define a flow: steps that follow each other, once per period. `recheck` is when a period is started and, if
        something of it was lost, failed or is new, healed; it takes the period's zone. Without it, call `start`.
        `fail_on` judges what its steps return, where their tasks have no `fail_on` of their own. `args` are arguments
        for all steps, or a function that gives them: a step takes those that it has parameters for, unless its own
        `args` or the step before it give them."""
        try:
            kind = once.in_zone(self.settings.tz) if isinstance(once, Period) else check_once(once)
            self.formats.learn(kind)
            flow = Flow(
                name,
                kind,
                client=lambda: self._client,
                portal=lambda: self.portal,
                known=self.tasks.get,
                formats=self.formats,
                on_failure=on_failure,
                fail_on=check_fail_on(fail_on),
                args=args,
            )
            trigger = trigger_of(recheck)
            if trigger is not None and isinstance(kind, Period):
                trigger = trigger.in_zone(kind.tz or self.settings.tz)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"flow {name}: {error}") from None
        options = TaskOptions(name=name, schedule=trigger, description=description or f"starts and heals flow {name}")
        self._add(flow.handler(), options)
        self.flows[name] = flow
        return flow

    def names(self) -> dict[str, Task[..., ..., Any, Any]]:
        """Tasks by all the names they answer to, aliases among them."""
        return {name: task for task in self.tasks.values() for name in (task.name, *task.aliases)}

    def is_disabled(self, name: str) -> bool:
        """Whether the task of this name is defined here, and its code or settings disable it."""
        task = self.tasks.get(name)
        if task is None:
            task = next((known for known in self.tasks.values() if name in known.aliases), None)
        return task is not None and not task.enabled

    def declared(self) -> list[Schedule]:
        """The schedules and deadlines that this app's code declares, without where they stand."""
        found = (definition_of(task).schedule(self.settings.tz, self.settings.name) for task in self.tasks.values())
        declared = [schedule for schedule in found if schedule is not None]
        return [*declared, *deadlines(self.tasks.values(), self.flows.values(), self.settings.tz, self.settings.name)]

    def specs(self) -> list[TaskSpec]:
        """What a start publishes of this app's tasks, under all their names."""
        return [replace(definition_of(task).spec, name=name) for name, task in self.names().items()]
