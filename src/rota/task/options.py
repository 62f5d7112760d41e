"""What `@app.task(...)` may say, and what is wrong with it, said when the task is defined."""

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, get_args

from msgspec import Struct

from rota.domain.activity import Activity
from rota.domain.arguments import Signature, type_hints
from rota.domain.guards import Guards, Join, Unique
from rota.domain.intake import Span, Timed, check_name, check_overlap, check_unique
from rota.domain.keys import KeyTemplate
from rota.domain.once import Once, check_once
from rota.domain.policy import Limit, Lost, Rate, Retry
from rota.domain.results import FailOn, check_fail_on
from rota.domain.schedule import CatchUp, Overlap
from rota.domain.triggers import Trigger
from rota.domain.user_key import UserKey
from rota.engine.context import Context
from rota.engine.executors.process import check_importable
from rota.engine.handler import ExecutorName
from rota.errors import InvalidOptions
from rota.task.kinds import check_said

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class TaskOptions(Struct, frozen=True, kw_only=True):
    """What `@app.task(...)` may say; each is checked when the task is defined."""

    name: str | None = None
    description: str | None = None
    retry: Retry = Retry()
    timeout: Span | str | None = None
    lost: Lost = "retry"
    max_losses: int = 5
    priority: int = 0
    executor: ExecutorName | None = None
    key: str | UserKey | None = None
    unique: Unique | None = None
    join: Join = "keep"
    max_pending: int | None = None
    limit: Limit | None = None
    rate: Rate | None = None
    enabled: bool = True
    fail_on: FailOn | None = None
    aliases: tuple[str, ...] = ()
    schedule: Trigger | str | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp = "latest"
    grace: Span | None = None
    start: datetime | None = None
    end: datetime | None = None
    activity: Activity | None = None
    once: Once | None = None
    expect: Trigger | str | None = None

    @classmethod
    def of(cls, name: str, said: Mapping[str, Any]) -> "TaskOptions":
        """The options of a task; InvalidOptions if one is unknown or of the wrong kind."""
        check_said(name, said, cls.__struct_fields__)
        chosen: dict[str, Any] = {**said, "aliases": tuple(said.get("aliases", ()))}
        return cls(**chosen)

    def timed(self) -> Timed:
        return Timed(overlap=self.overlap, catch_up=self.catch_up, grace=self.grace, start=self.start, end=self.end)

    def guards(self) -> Guards:
        if self.join not in ("keep", "push", "set", "refuse"):
            raise ValueError(f"join={self.join!r}: choose keep, push, set or refuse")
        unique = None if self.unique is None else check_unique(self.unique)
        return Guards(unique=unique, join=self.join, max_pending=self.max_pending, marks=self.is_marked)

    @property
    def is_marked(self) -> bool:
        """Are its endings remembered, although not every run is judged by them?"""
        return self.activity is not None or self.expect is not None

    def check(self, fn: Callable[..., Any]) -> None:
        """What does not go together, said when the task is defined."""
        per_key = (self.limit and self.limit.per_key) or (self.rate and self.rate.per_key)
        if per_key and self.key is None:
            raise ValueError('a limit or rate per_key needs key=, e.g. key="{path}"')
        if self.executor not in (None, "loop", "thread", "process"):
            raise ValueError(f"executor={self.executor!r}: choose loop, thread or process")
        if self.executor == "loop" and not inspect.iscoroutinefunction(fn):
            raise ValueError('executor="loop" needs an async function; a plain one would block the event loop')
        if self.executor == "thread" and inspect.iscoroutinefunction(fn):
            raise ValueError('executor="thread" needs a plain function; an async one runs on the loop')
        if self.executor == "process":
            check_importable(fn)
        check_fail_on(self.fail_on)
        for alias in self.aliases:
            check_name(alias)
        check_overlap(self.overlap, self.catch_up)
        self._check_once()
        if self.schedule is None and self.timed() != Timed():
            raise ValueError("overlap, catch_up, grace, start and end are about a schedule: give schedule= as well")

    def _check_once(self) -> None:
        if self.once is None:
            return
        check_once(self.once)
        if self.expect is not None and self.key is not None:
            raise ValueError(
                "expect= with once= and key=: which of the keys is expected? Expect a step of a flow instead"
            )
        if self.unique is not None or self.activity is not None:
            raise ValueError(
                "once= says already which runs may not stand beside each other: leave out unique, activity"
            )


def key_of(key: str | UserKey | None, signature: Signature) -> KeyTemplate | UserKey | None:
    """Checked against the parameters that it is made from."""
    parameters = signature.parameters.parameters
    if isinstance(key, UserKey):
        key.check(parameters)
        return key
    return None if key is None else KeyTemplate(key, parameters)


def trigger_of(schedule: object) -> Trigger | None:
    """A trigger, or the text of one."""
    if schedule is None or isinstance(schedule, Trigger):
        return schedule
    if not isinstance(schedule, str):
        raise TypeError(f"schedule={schedule!r}: a trigger such as Cron('0 9 * * *'), DailyAt(9) or Every(minutes=5)")
    return Trigger.parse(schedule)


def default_executor(fn: Callable[..., Any]) -> ExecutorName:
    return "loop" if inspect.iscoroutinefunction(fn) else "thread"


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
    try:
        parameters = list(inspect.signature(fn).parameters)
    except ValueError:
        raise InvalidOptions(
            f"task {name}: {fn!r} does not say which arguments it takes; wrap it in a function of your own"
        ) from None
    if inspect.ismethod(fn) or (parameters and parameters[0] in ("self", "cls")):
        raise InvalidOptions(f"{name} is a method; a task is a function, so that any worker can call it")


def takes_context(fn: Callable[..., Any]) -> bool:
    """Whether the first parameter is the Context. Anywhere else, or without its annotation, it would be taken for an
    argument that the caller has to give: so that is refused."""
    hints = type_hints(fn)
    found = False
    for place, parameter in enumerate(inspect.signature(fn).parameters.values()):
        name, hint = parameter.name, hints.get(parameter.name)
        is_context = hint is Context or Context in get_args(hint)
        if name == "ctx" and hint is None:
            raise ValueError(
                "the parameter ctx has no annotation; write `ctx: Context`, as the first parameter, if it is the "
                "context of the run, and annotate it otherwise, e.g. `ctx: dict`"
            )
        if is_context and (place > 0 or hint is not Context or parameter.kind not in POSITIONAL):
            raise ValueError(
                f"the Context comes first: write `{name}: Context` as the first parameter, in front of the arguments"
            )
        found = found or is_context
    return found
