"""TaskSpec: what the code declares of a task, published to the store so that every process can read it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.activity import Activity
from rota.domain.guards import Guards
from rota.domain.overrides import OVERRIDE_ROW, Overrides, policy_under
from rota.domain.period import Period
from rota.domain.policy import Limit, Policy, Rate, Share
from rota.domain.run import DEFAULT_QUEUE, UNIQUE_ROW, WINDOW_ROW, Callback, Run
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


def implied_limits(specs: "Iterable[TaskSpec]") -> "list[TaskSpec]":
    """Return the rows of the named limits of `specs` that are not among `specs`. A store adds those that it does not
    have: a task whose limit nobody has declared could not start otherwise."""
    given = list(specs)
    rows = {row.name: row for spec in reversed(given) for row in map(limit_row, spec.limits)}
    return [row for name, row in rows.items() if not any(spec.name == name for spec in given)]


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


def override_row(task: str, overrides: Overrides) -> "TaskSpec":
    """Return the row that has the overrides of a task. Its limit, rate and switch are for Lua and SQL."""
    enabled = overrides.enabled is not False
    return TaskSpec(
        f"{OVERRIDE_ROW}{task}", enabled=enabled, limit=overrides.limit, rate=overrides.rate, overrides=overrides
    )


def overridden(runs: Sequence[Run], overrides: Mapping[str, Overrides]) -> list[Run]:
    """Return claimed runs with the policies by which they are called; `overrides` are those of their tasks."""
    return [
        replace(run, policy=policy_under(found, run.policy)) if (found := overrides.get(run.task)) else run
        for run in runs
    ]


def joined(specs: "Iterable[TaskSpec]", rows: "Iterable[TaskSpec]") -> "list[TaskSpec]":
    """Return the specs with their overrides, which are in `rows`, and without such rows."""
    found = {row.name.removeprefix(OVERRIDE_ROW): row.overrides for row in rows if row.name.startswith(OVERRIDE_ROW)}
    shown = (spec for spec in specs if not spec.name.startswith(OVERRIDE_ROW))
    return [replace(spec, overrides=found[spec.name]) if spec.name in found else spec for spec in shown]


class TaskSpec(Struct, frozen=True, omit_defaults=True):
    """The declaration of a task; the last one published counts. `paused`, `paused_until` and `paused_keys` are not
    declared: commands set them, and they stay until somebody resumes the task or the key, or until `paused_until`."""

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
    paused_until: float | None = None
    """The pause ends by itself at this instant of the store's clock; None: when somebody resumes the task."""

    overrides: Overrides | None = None
    """What an operator says of the task. Not declared: a store adds it to what it answers."""

    @property
    def starts_nothing(self) -> bool:
        """Whether no run of the task starts now, because an operator paused the task or it is disabled."""
        return self.paused or not self.enabled or (self.overrides is not None and self.overrides.enabled is False)

    def in_force(self, overrides: Overrides | None = None) -> "TaskSpec":
        """Return the spec with `overrides`, or else with its own, in place of what the code says."""
        given = overrides or self.overrides
        if given is None:
            return self
        return replace(
            self,
            enabled=self.enabled and given.enabled is not False,
            limit=given.limit or self.limit,
            rate=given.rate or self.rate,
            policy=policy_under(given, self.policy),
        )

    def as_of(self, now: float) -> "TaskSpec":
        """Return the spec without a pause that is over at `now`. Stores answer with specs as of their time."""
        over = self.paused_until is not None and self.paused_until <= now
        return replace(self, paused=False, paused_until=None) if over else self

    def declaration(self) -> "TaskSpec":
        """Return the spec as the code declares it, without what commands have set."""
        overrides = self.overrides if self.name.startswith(OVERRIDE_ROW) else None
        return replace(self, paused=False, paused_keys=(), paused_until=None, overrides=overrides)

    @property
    def gated(self) -> bool:
        """Whether a limit, a rate or the pause of a key decides when runs of the task start."""
        return self.limit is not None or self.rate is not None or bool(self.limits or self.paused_keys)
