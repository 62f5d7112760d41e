"""Registry: the tasks and flows that the code of an app defines, and the schedules and specs that follow from them."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from msgspec.structs import replace

from rota.client.client import Client
from rota.domain.arguments import Signature
from rota.domain.fan import Spreads
from rota.domain.flow import OnFailure
from rota.domain.guards import Guards
from rota.domain.once import Once, check_once
from rota.domain.period import Period
from rota.domain.period_formats import Formats
from rota.domain.policy import Limit
from rota.domain.results import FailOn, check_fail_on
from rota.domain.run import NewRun, Run
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec, limit_row, unique_row
from rota.domain.triggers import Trigger
from rota.engine.context import Context
from rota.engine.middleware import Middleware, check_middleware
from rota.errors import DuplicateTask, InvalidOptions
from rota.flow import Flow, StepArgs, handler_of
from rota.schedules.deadlines import deadlines
from rota.settings import Settings
from rota.task import Definition, Submitter, Task, TaskOptions, definition_of, trigger_of
from rota.task.fan_out import spread_children
from rota.task.kinds import check_options_of

P = ParamSpec("P")
R = TypeVar("R")
Coro = Coroutine[Any, Any, R]
AnyTask = Task[..., ..., Any, Any]


class Decorator(Protocol):
    """What `@app.task(...)` returns: a decorator for each of the four shapes of a task function."""

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


class Registry:
    """The tasks and flows of one app. Every mistake in their options is raised here, when the code is imported."""

    def __init__(
        self,
        settings: Settings,
        submitter: Submitter,
        fail_on: FailOn | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        """`fail_on` is for the tasks that have none of their own, `middleware` for all of them."""
        try:
            self.fail_on = check_fail_on(fail_on)
            self.middleware = check_middleware(middleware)
        except TypeError as error:
            raise InvalidOptions(str(error)) from None
        self.around: list[Callable[..., Any]] = []
        """Context managers around every call of a handler, in its own thread or task."""
        self.tasks: dict[str, AnyTask] = {}
        """The tasks that the app serves: `rota worker --tasks` leaves out others."""
        self._known: dict[str, AnyTask] = {}  # all tasks of the code, by names and aliases
        self.flows: dict[str, Flow] = {}
        self.formats = Formats()
        """How the app writes its periods: the `format` of each kind of period that the code names."""
        self._limits: dict[str, tuple[Limit, str]] = {}  # the named limits of the code, each with its first task
        self._uniques: dict[str, tuple[Guards, str]] = {}  # the names of shared keys, each with its first task
        self._settings = settings
        self._submitter = submitter

    def define(self, fn: Callable[..., Any], options: dict[str, Any]) -> AnyTask:
        """The task of `@app.task(**options)`, with the changes that the settings make to its options."""
        name = str(options.get("name") or getattr(fn, "__name__", fn))
        check_options_of(name, options)
        return self._add(fn, self._settings.override(name).over(cast("TaskOptions", options)), self.fail_on)

    def define_flow(
        self,
        name: str,
        once: Once,
        recheck: Trigger | str | None,
        on_failure: OnFailure,
        description: str,
        fail_on: FailOn | None,
        args: StepArgs,
    ) -> Flow:
        """The flow of `app.flow(...)`, and the task of the same name that starts and heals its periods."""
        tz = self._settings.tz
        try:
            kind = once.in_zone(tz) if isinstance(once, Period) else check_once(once)
            self.formats.learn(kind)
            flow = Flow(
                name,
                kind,
                client=self._submitter.client,
                portal=self._submitter.portal,
                known=self.tasks.get,
                formats=self.formats,
                on_failure=on_failure,
                fail_on=check_fail_on(fail_on),
                args=args,
            )
            trigger = trigger_of(recheck)
            if trigger is not None and isinstance(kind, Period):
                trigger = trigger.in_zone(kind.tz or tz)
        except (TypeError, ValueError) as error:
            raise InvalidOptions(f"flow {name}: {error}") from None
        options = TaskOptions(name=name, schedule=trigger, description=description or f"starts and heals flow {name}")
        self._add(handler_of(flow), options)
        self.flows[name] = flow
        return flow

    def _add(self, fn: Callable[..., Any], options: TaskOptions, fail_on: FailOn | None = None) -> AnyTask:
        settings = self._settings
        definition = Definition(fn, options, self._submitter, settings.tz, fail_on, self.middleware, self.around)
        task: AnyTask = Task(fn, definition)
        for name in (task.name, *task.aliases):
            if name in self.names():
                raise DuplicateTask(
                    f"two functions are named {name}; give one of them name=, so that runs find the right one"
                )
        try:
            self.formats.learn(definition.once)
        except ValueError as error:
            raise InvalidOptions(f"task {task.name}: once: {error}") from None
        self._name_limits(definition)
        self._name_unique(definition)
        definition.schedules(settings.tz, settings.name, settings.version)  # raises if a schedule cannot be made
        self.tasks[task.name] = task
        self._known |= dict.fromkeys((task.name, *task.aliases), task)
        return task

    def _name_limits(self, definition: Definition) -> None:
        """Learn the named limits of a task. In one app, a name has one number in the code; the settings win over it."""
        for limit in definition.spec.limits:
            known, task = self._limits.setdefault(limit.name or "", (limit, definition.name))
            if known.total != limit.total:
                raise InvalidOptions(
                    f"task {definition.name}: Limit({limit.total}, name={limit.name!r}), but {task} has "
                    f"{known.total}: a named limit has one number; [limits.{limit.name}] total in rota.toml changes it"
                )
        numbers = self._settings.limits
        limits = tuple(replace(each, total=numbers.get(each.name or "", each.total)) for each in definition.spec.limits)
        definition.spec = replace(definition.spec, limits=limits)

    def _name_unique(self, definition: Definition) -> None:
        """Learn the name under which a task shares its unique keys. In one app, a name has one rule."""
        guards = definition.spec.guards
        if guards.unique_in is None:
            return
        known, task = self._uniques.setdefault(guards.unique_in, (guards, definition.name))
        if (known.unique, known.within, known.sliding) != (guards.unique, guards.within, guards.sliding):
            raise InvalidOptions(
                f"task {definition.name}: unique_in={guards.unique_in!r}, but {task} says unique= or within= "
                "otherwise: tasks that share their keys have one rule"
            )

    def names(self) -> dict[str, AnyTask]:
        """Return the tasks by their names and by their aliases."""
        return {name: task for task in self.tasks.values() for name in (task.name, *task.aliases)}

    def find(self, name: str) -> AnyTask | None:
        """Return the task with this name or alias."""
        found = self.tasks.get(name)
        return found or next((task for task in self.tasks.values() if name in task.aliases), None)

    def signature_of(self, name: str) -> Signature | None:
        """Return the parameters of the task with this name or alias; None if its code is not here."""
        found = self.find(name)
        return None if found is None else definition_of(found).signature

    def known(self) -> frozenset[str]:
        """Return the names of all tasks of the code, also of those that this process does not serve."""
        return frozenset(self._known)

    def children_of(
        self, client: Callable[[], Client], run: Run, spreads: Spreads, items: Sequence[Any], first: int
    ) -> list[NewRun]:
        """Return the runs that `run`, which has returned a list, makes of some of its items."""
        definition = definition_of(self._known[spreads.task])
        return [client().prepared(new) for new in spread_children(definition, run, spreads, items, first)]

    def is_disabled(self, name: str) -> bool:
        """Return whether the task of this name is defined here, and its code or settings disable it."""
        task = self.tasks.get(name)
        if task is None:
            task = next((known for known in self.tasks.values() if name in known.aliases), None)
        return task is not None and not task.enabled

    def declared(self) -> list[Schedule]:
        """Return the schedules and deadlines that the code declares, without their next ticks."""
        tz, owner, version = self._settings.tz, self._settings.name, self._settings.version
        declared = [each for task in self.tasks.values() for each in definition_of(task).schedules(tz, owner, version)]
        return [*declared, *deadlines(self.tasks.values(), self.flows.values(), tz, owner)]

    def specs(self) -> list[TaskSpec]:
        """Return the specs that a worker publishes when it starts: one for each name and alias of a task."""
        return [replace(definition_of(task).spec, name=name) for name, task in self.names().items()]

    def published(self) -> list[TaskSpec]:
        """Return all that a worker publishes when it starts: the numbers of the named limits, the rows of unique keys,
        and the specs."""
        specs = self.specs()
        limits = {limit.name: limit for spec in specs for limit in spec.limits}
        uniques = {row.name: row for row in map(unique_row, specs) if row is not None}
        return [*(limit_row(limit) for limit in limits.values()), *uniques.values(), *specs]
