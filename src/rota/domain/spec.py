"""TaskSpec: what the code declares of a task, published to the store so that every process can read it."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from rota.domain.activity import Activity
from rota.domain.guards import Guards
from rota.domain.period import Period
from rota.domain.policy import Limit, Policy, Rate, Share
from rota.domain.run import DEFAULT_QUEUE, UNIQUE_ROW, WINDOW_ROW, Callback
from rota.domain.tuning import Retention
from rota.domain.user_key import UserKey

NamedByCode = Literal["code"]
"""The `once` of a task whose periods a function names: only a process that has the code can name a period."""


LIMIT_ROW = "limit "
"""A named limit is stored as the spec of a task of this name and the name of the limit. Its `limit` is the number. No
task can have such a name, because the name of a task has no space."""


ACTIVE_MEMORY = 400 * 86_400.0
"""Seconds for which a store remembers which of several tasks got a run of a shared unique key."""


def limit_row(limit: Limit) -> "TaskSpec":
    """Return the row that has the number of a named limit."""
    return TaskSpec(f"{LIMIT_ROW}{limit.name}", limit=Limit(limit.total))


def unique_row(spec: "TaskSpec") -> "TaskSpec | None":
    """Return the row that says for how long the marks of shared unique keys, or of the windows of a task, are kept.

    None if the task has neither.
    """
    guards = spec.guards
    if guards.unique_in is None and guards.within is None:
        return None
    name = f"{WINDOW_ROW}{spec.name}" if guards.unique_in is None else f"{UNIQUE_ROW}{guards.unique_in}"
    if guards.within is None and guards.unique == "done":
        return TaskSpec(name, guards=Guards(unique="done"))
    return TaskSpec(name, memory=ACTIVE_MEMORY if guards.within is None else guards.within)


def limited_by(specs: "Iterable[TaskSpec]", rows: Sequence[str]) -> list[str]:
    """Return the tasks that count against one of the named limits of these rows."""
    return [spec.name for spec in specs if any(f"{LIMIT_ROW}{limit.name}" in rows for limit in spec.limits)]


class TaskSpec(Struct, frozen=True, omit_defaults=True):
    """The declaration of a task; the last one published counts. `paused` and `paused_keys` are not declared: commands
    set them, and they stay until somebody resumes the task or the key."""

    name: str
    enabled: bool = True
    limit: Limit | None = None
    rate: Rate | None = None
    description: str = ""
    executor: str = ""
    paused: bool = False
    parameters: tuple[str, ...] = ()
    defaults: dict[str, Any] = {}
    open: bool = False
    """The function has `**kwargs`."""
    key: str | UserKey | None = None
    priority: int = 0
    policy: Policy = Policy()
    guards: Guards = Guards()
    activity: Activity | None = None
    once: Period | NamedByCode | None = None
    """The task succeeds once per period. "code": a function in the code names the period."""
    memory: float = 0.0
    """Additional seconds for which the marks of the task are kept."""
    queue: str = DEFAULT_QUEUE
    share: Share | None = None
    keep: Retention | None = None
    """How long the ended runs of the task are kept; None: as the settings say."""
    limits: tuple[Limit, ...] = ()
    """The named limits that runs of the task count against, by name."""
    on_end: tuple[Callback, ...] = ()
    schema: dict[str, Any] | None = None
    """A JSON Schema of the arguments, of a task that was declared without code (`domain.schemas`)."""
    paused_keys: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Names of arguments and fields that people do not get to see (`domain.secrets`)."""

    @property
    def starts_nothing(self) -> bool:
        """Whether no run of the task starts now, because an operator paused the task or its code disables it."""
        return self.paused or not self.enabled

    @property
    def gated(self) -> bool:
        """Whether a limit, a rate or the pause of a key decides when runs of the task start."""
        return self.limit is not None or self.rate is not None or bool(self.limits or self.paused_keys)
