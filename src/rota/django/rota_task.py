"""RotaTask: a task of django.tasks with rota's policies, and `rota.django.task`, which makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypedDict, TypeVar, Unpack, overload

from rota.django.tasks_api import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_QUEUE_NAME,
    Task,
    TaskContext,
    TaskResult,
)

if TYPE_CHECKING:  # none of these is loaded before a task uses it: every process of a project imports its tasks
    from typing import Literal

    from rota.domain.activity import Activity, Breaker
    from rota.domain.guards import Join, Sliding, Unique
    from rota.domain.intake import Span
    from rota.domain.once import Once
    from rota.domain.policy import Limit, Lost, Rate, Retry, Share, TraceMode
    from rota.domain.results import FailOn
    from rota.domain.schedule import CatchUp, Overlap
    from rota.domain.triggers import Trigger
    from rota.domain.tuning import Retention
    from rota.domain.user_key import UserKey
    from rota.engine.middleware import Middleware

    TaskOf = Task
else:

    class TaskOf:
        """`Task[P, R]` for type checkers; at run time, the class of Django 6 takes no parameters."""

        def __class_getitem__(cls, of: object) -> type:
            return Task


P = ParamSpec("P")
R = TypeVar("R")

Backoff = Callable[[BaseException, "TaskResult[Any, Any]"], "float | None"]
"""Returns the seconds until the next attempt, or None for no more."""


class Policies(TypedDict, total=False):
    """What `rota.django.task` and `using` take beside Django's own options: the options of `@app.task`, and Django's
    names for retries."""

    max_attempts: int | None
    backoff: Backoff | None
    description: str | None
    retry: Retry | None
    timeout: Span | str | None
    lost: Lost | None
    max_losses: int | None
    executor: Literal["loop", "thread", "process"] | None
    key: str | UserKey | None
    share: str | Share | None
    unique: Unique | None
    within: Span | Sliding | None
    unique_in: str | None
    join: Join | None
    max_pending: int | None
    limit: Limit | Sequence[Limit] | None
    rate: Rate | None
    enabled: bool | None
    keep: Span | str | Retention | None
    on_success: object
    on_failure: object
    on_cancel: object
    middleware: Sequence[Middleware] | None
    fail_on: FailOn | None
    aliases: Sequence[str] | None
    schedule: Trigger | str | Sequence[Trigger | str] | Mapping[str, Trigger | str] | None
    overlap: Overlap | None
    catch_up: CatchUp | None
    grace: Span | None
    start: datetime | None
    end: datetime | None
    buffer: int | None
    times: int | None
    breaker: Breaker | None
    activity: Activity | None
    once: Once | None
    expect: Trigger | str | None
    logs: bool | None
    trace: TraceMode | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RotaTask(TaskOf[P, R]):
    """A Django task with rota's policies: each is a field, None if it is not given. See `rota.TaskOptions`.

    `max_attempts` counts the first call too. `backoff(exception, task_result)` returns the seconds until the next
    attempt, or None for no more.
    """

    max_attempts: int | None = None
    backoff: Backoff | None = None
    description: str | None = None
    retry: Retry | None = None
    timeout: Span | str | None = None
    lost: Lost | None = None
    max_losses: int | None = None
    executor: Literal["loop", "thread", "process"] | None = None
    key: str | UserKey | None = None
    share: str | Share | None = None
    unique: Unique | None = None
    within: Span | Sliding | None = None
    unique_in: str | None = None
    join: Join | None = None
    max_pending: int | None = None
    limit: Limit | Sequence[Limit] | None = None
    rate: Rate | None = None
    enabled: bool | None = None
    keep: Span | str | Retention | None = None
    on_success: object = None
    on_failure: object = None
    on_cancel: object = None
    middleware: Sequence[Middleware] | None = None
    fail_on: FailOn | None = None
    aliases: Sequence[str] | None = None
    schedule: Trigger | str | Sequence[Trigger | str] | Mapping[str, Trigger | str] | None = None
    overlap: Overlap | None = None
    catch_up: CatchUp | None = None
    grace: Span | None = None
    start: datetime | None = None
    end: datetime | None = None
    buffer: int | None = None
    times: int | None = None
    breaker: Breaker | None = None
    activity: Activity | None = None
    once: Once | None = None
    expect: Trigger | str | None = None
    logs: bool | None = None
    trace: TraceMode | None = None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, field.name) == getattr(other, field.name) for field in fields(self)
        )

    def __repr__(self) -> str:
        """Shows Django's own fields and the policies that were given: most are not."""
        own = {field.name: getattr(self, field.name) for field in fields(Task) if field.name != "func"}
        given = ", ".join(f"{name}={value!r}" for name, value in (own | policies_of(self)).items())
        return f"{type(self).__name__}({self.module_path}, {given})"

    def __hash__(self) -> int:
        return hash((self.func, self.priority, self.queue_name, self.backend, self.run_after))

    def using(
        self,
        *,
        priority: int | None = None,
        queue_name: str | None = None,
        run_after: datetime | None = None,
        backend: str | None = None,
        **policies: Unpack[Policies],
    ) -> RotaTask[P, R]:
        """Return the task with other options for the next `enqueue`: Django's own, and `retry`, `timeout`, `lost`,
        `key` and `unique`. The other policies belong to the task itself."""
        changes: dict[str, Any] = {
            name: value
            for name, value in {
                "priority": priority,
                "queue_name": queue_name,
                "run_after": run_after,
                "backend": backend,
                **policies,
            }.items()
            if value is not None
        }
        if unknown := policies.keys() - USING:
            raise TypeError(f"using({min(unknown)}=...): give it to the task; using takes {', '.join(sorted(USING))}")
        return replace(self, **changes)


USING = frozenset({"retry", "timeout", "lost", "key", "unique", "max_attempts"})
"""The policies that one run can have of its own."""
POLICIES = tuple(field.name for field in fields(RotaTask) if field.name not in {own.name for own in fields(Task)})
"""The names of the fields that RotaTask adds."""


def policies_of(task: Task[..., Any]) -> dict[str, Any]:
    """Return the policies that a task of this project gives, by name; none for a plain task of Django."""
    given = {name: getattr(task, name, None) for name in POLICIES} if isinstance(task, RotaTask) else {}
    return {name: value for name, value in given.items() if value is not None}


@overload
def task(function: Callable[P, R], /) -> RotaTask[P, R]: ...
@overload
def task(
    *,
    takes_context: Literal[True],
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    **policies: Unpack[Policies],
) -> Callable[[Callable[Concatenate[TaskContext[Any, Any], P], R]], RotaTask[P, R]]: ...
@overload
def task(
    *,
    takes_context: Literal[False] = ...,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    **policies: Unpack[Policies],
) -> Callable[[Callable[P, R]], RotaTask[P, R]]: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    takes_context: bool = False,
    priority: int = 0,
    queue_name: str = DEFAULT_TASK_QUEUE_NAME,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    **policies: Any,
) -> Any:
    """`@task` of django.tasks with rota's policies: `@task(retry=Retry(5), timeout=30)`.

    It works the same on Django 5.2, 6.0 and 6.1 and under every backend; a backend that is not rota's ignores the
    policies. On Django 6.1, `django.tasks.task` takes the policies too if the backend is one of `rota.django.tasks`.
    """
    if "run_after" in policies:
        raise TypeError("run_after belongs to one run: write using(run_after=...)")

    def define(fn: Callable[..., Any]) -> RotaTask[..., Any]:
        return RotaTask(
            func=fn,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,  # without a default in Django 6.0
            **policies,
        )

    return define if function is None else define(function)
