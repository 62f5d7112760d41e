"""Tasks: what the code defines, joined with what the store knows of them."""

import inspect
import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rota.client.fleet import is_inner
from rota.domain.activity import Activity
from rota.domain.overrides import Overrides
from rota.domain.policy import Limit, Rate, Share
from rota.domain.spec import TaskSpec
from rota.domain.text import one_line
from rota.domain.tuning import Retention
from rota.flow import Flow
from rota.store import Depth, Reads
from rota.task import Task, definition_of
from rota.views.values import iso

AnyTask = Task[..., ..., Any, Any]


class TaskRow(Struct, frozen=True):
    """What the store knows of a task; `spec` is None if no worker has published the task."""

    depth: Depth
    spec: TaskSpec | None


class RetryView(Struct, frozen=True):
    limit: int | None
    backoff: str
    delay: float
    max_delay: float
    jitter: float
    factor: float


class OverridesView(Struct, frozen=True):
    """What an operator says of a task, and which wins over its code; None: as the code says."""

    version: int
    enabled: bool | None
    limit: Limit | None
    rate: Rate | None
    retry: RetryView | None
    timeout: float | None
    note: str | None
    by: str | None
    at: str


class TaskView(Struct, frozen=True):
    """A task or, if `kind` is "flow", a flow. `enabled` is what workers published, `enabled_here` what the code here
    says; `defined` is False for a task that only the store knows."""

    task: str
    parameters: str | None
    executor: str | None
    retries: int | None
    """None: without end."""
    timeout: float | None
    enabled: bool
    enabled_here: bool | None
    paused: bool
    paused_until: str | None
    paused_keys: Sequence[str]
    overrides: OverridesView | None
    """None: an operator has overridden nothing. The other fields are as the code says."""
    limit: Limit | None
    limits: Sequence[Limit]
    """Named limits, which the task shares with others."""
    rate: Rate | None
    activity: Activity | None
    priority: int
    queue: str
    share: Share | None
    max_pending: int | None
    keep: Retention | None
    queued: int
    running: int
    paused_runs: int
    defined: bool
    kind: str
    steps: int | None
    description: str


async def task_rows(store: Reads) -> dict[str, TaskRow]:
    """Return all tasks that are published in `store` or have unfinished runs there, by name."""
    depths = {depth.task: depth for depth in (await store.depths()).items}
    specs = {spec.name: spec for spec in (await store.rows(TaskSpec)).items}
    return {
        name: TaskRow(depths.get(name) or Depth(name, 0, 0), specs.get(name))
        for name in sorted({*depths, *specs})
        if not is_inner(name)
    }


def task_view(name: str, task: AnyTask | None, row: TaskRow | None, flow: Flow | None) -> TaskView:
    """`task` is what the code defines under `name`, `row` what the store knows, `flow` the flow of that name."""
    depth = row.depth if row else Depth(name, 0, 0)
    spec = spec_in_store(name, task, row.spec if row else None)
    own = definition_of(task) if task else None
    policy = own.spec.policy if own else spec.policy
    return TaskView(
        task=name,
        parameters=_parameters(own.signature.parameters) if own else None,
        executor=(own and own.executor) or spec.executor or None,
        retries=policy.retry.limit,
        timeout=policy.timeout,
        enabled=spec.enabled,
        enabled_here=task.enabled if task else None,
        paused=spec.paused,
        paused_until=None if spec.paused_until is None else iso(spec.paused_until),
        paused_keys=spec.paused_keys,
        overrides=overrides_view(row.spec.overrides if row and row.spec else None),
        limit=spec.limit,
        limits=spec.limits,
        rate=spec.rate,
        activity=spec.activity,
        priority=spec.priority,
        queue=spec.queue,
        share=spec.share,
        max_pending=spec.guards.max_pending,
        keep=spec.keep,
        queued=depth.queued,
        running=depth.running,
        paused_runs=depth.paused,
        defined=task is not None,
        kind="task" if flow is None else "flow",
        steps=None if flow is None else len(flow.steps),
        description=one_line((task.description if task else spec.description).partition("\n")[0]),
    )


def overrides_view(given: Overrides | None) -> OverridesView | None:
    if given is None or not given.values():
        return None
    retry = given.retry
    shown = None if retry is None else RetryView(*(getattr(retry, name) for name in RetryView.__struct_fields__))
    kept = (given.version, given.enabled, given.limit, given.rate, shown, given.timeout)
    return OverridesView(*kept, given.note, given.by, iso(given.at))


def spec_in_store(name: str, task: AnyTask | None, stored: TaskSpec | None) -> TaskSpec:
    """Return the spec that a worker published, because that spec is in force; else the spec of the code here.

    The store keeps only the pause of a task that was paused before a worker published it.
    """
    if stored is not None and (stored.executor or task is None):
        return stored
    spec = definition_of(task).spec if task else TaskSpec(name)
    if stored is None:
        return spec
    return replace(spec, paused=stored.paused, paused_keys=stored.paused_keys, paused_until=stored.paused_until)


def _parameters(signature: inspect.Signature) -> str:
    """Return the parameters as in the code, without parentheses and without the type of the result. Types of rota have
    their public names."""
    text = str(signature.replace(return_annotation=inspect.Signature.empty))[1:-1]
    return one_line(re.sub(r"\brota(\.[a-z_]+)+\.(?=[A-Z])", "", text))
