"""The options of `@app.task(...)`, and the checks of options that exclude or need each other."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from rota.domain.activity import Activity, Breaker
from rota.domain.guards import Guards, Join, Sliding, Unique
from rota.domain.intake import Span, check_name, check_unique, check_unique_in, window_of
from rota.domain.once import Once, check_once
from rota.domain.policy import Limit, Lost, Rate, Retry, Share, TraceMode
from rota.domain.results import FailOn, check_fail_on
from rota.domain.schedule import CatchUp, Overlap
from rota.domain.scheduling import Timed, check_overlap
from rota.domain.triggers import Trigger
from rota.domain.tuning import Retention
from rota.domain.user_key import UserKey
from rota.engine.executors.process import check_importable
from rota.engine.handler import ExecutorName
from rota.engine.middleware import Middleware

if TYPE_CHECKING:
    from rota.task.task import Task


class TaskOptions(TypedDict, total=False):
    """The options of `@app.task(...)`. This is the only list of them.

    A new option is read in `Definition` (rota.task.definition). `TaskOverride` (rota.settings.overrides) says whether
    `rota.toml` may change it, `kinds.TASK` (rota.task.kinds) which values it takes. tests/engine/test_option_lists.py
    fails for an option that is missing in one of these places, and says where.
    """

    name: str | None
    """The name of the task; by default the name of the function."""
    description: str | None
    """One line for people; by default the first line of the docstring."""
    retry: Retry
    """How often and when a failed call is retried; by default never."""
    timeout: Span | str | None
    """Seconds after which a call is stopped."""
    lost: Lost
    """What happens to a run whose worker died: `retry` (the default) or `fail`."""
    max_losses: int
    """The number of lost workers after which a run has failed; by default 5."""
    priority: int
    """From -100 to 100; runs with a higher priority start first."""
    queue: str
    """The queue of its runs; workers started with `--queues` take only runs of theirs. By default `default`."""
    executor: ExecutorName | None
    """Where the function runs: `loop`, `thread` or `process`."""
    key: str | UserKey | None
    """What a run is about, as a template of arguments: `"{path}"`."""
    share: str | Share | None
    """By what waiting runs take turns, as a template of arguments: `"{tenant}"`."""
    unique: Unique | None
    """Which other run of the same key a new run may not stand beside: `queued`, `active` or `done`."""
    within: Span | Sliding | None
    """With `unique="done"`: seconds for which a success keeps out others, counted from the accepted submit."""
    unique_in: str | None
    """The name under which tasks share their unique keys: a key is unique across all of them."""
    join: Join
    """What a submit does with the run that it may not stand beside: `keep`, `push`, `set` or `refuse`."""
    max_pending: int | None
    """The most unfinished runs; a submit beyond that waits, or is refused."""
    limit: Limit | Sequence[Limit] | None
    """How many runs may run at the same time; a limit with a name is shared by tasks, and a list has several."""
    rate: Rate | None
    """How many runs may start per interval."""
    enabled: bool
    """If False, no run of the task is made or started."""
    keep: Span | str | Retention | None
    """How long ended runs are kept: seconds, or a Retention; by default as the settings say."""
    on_success: "Task[..., ..., Any, Any] | str | None"
    """The task that is called with `Ended` when a run has succeeded."""
    on_failure: "Task[..., ..., Any, Any] | str | None"
    """The task that is called with `Ended` when a run has failed for good, also because its worker was lost."""
    on_cancel: "Task[..., ..., Any, Any] | str | None"
    """The task that is called with `Ended` when a run was cancelled or has expired."""
    logs: bool
    """Keep the last 64 KiB of what the function logs with each attempt: `rota runs logs`. By default False."""
    trace: TraceMode
    """With OpenTelemetry: `link` (the default) makes each call a trace of its own, linked to its submit; `parent` makes
    it a part of the trace of the submit."""
    middleware: Sequence[Middleware]
    """Async functions `(ctx, call)` around each call, inside those of the app."""
    fail_on: FailOn | None
    """A function of the returned value that says whether the run has failed."""
    aliases: Sequence[str]
    """Former names of the task: runs and schedules with such a name are this task's."""
    schedule: Trigger | str | Sequence[Trigger | str] | Mapping[str, Trigger | str] | None
    """When the task runs by itself: a trigger, or several, in a list or by name."""
    overlap: Overlap | None
    """What a tick does while an earlier run is unfinished: `skip`, `queue`, `allow`, `replace` or `buffer`."""
    catch_up: CatchUp
    """Which missed ticks run later: `latest` (the default), `all` or `skip`."""
    grace: Span | None
    """Seconds after a tick when its run is too late to start."""
    start: datetime | None
    """The schedule has no tick before this instant."""
    end: datetime | None
    """The schedule has no tick after this instant."""
    buffer: int
    """With overlap="buffer", how many runs may wait; by default 100."""
    times: int | None
    """The schedule ends when it has made so many runs."""
    breaker: Breaker | None
    """After so many failed runs in a row, the ticks make no run for a while."""
    activity: Activity | None
    """How `touch` makes runs."""
    once: Once | None
    """The period in which a run succeeds only once."""
    expect: Trigger | str | None
    """When a run should have succeeded; otherwise the task is late."""


def timed_by(options: TaskOptions) -> Timed:
    """Return what the options say about the schedule, beside its trigger."""
    return Timed(
        overlap=options.get("overlap"),
        catch_up=options.get("catch_up", "latest"),
        grace=options.get("grace"),
        start=options.get("start"),
        end=options.get("end"),
        buffer=options.get("buffer"),
        times=options.get("times"),
        breaker=options.get("breaker"),
    )


def guards_of(options: TaskOptions) -> Guards:
    """Return the guards of the task's runs. A run writes a mark if an activity or a deadline reads the marks of the
    task."""
    join = options.get("join", "keep")
    if join not in ("keep", "push", "set", "refuse"):
        raise ValueError(f"join={join!r}: choose keep, push, set or refuse")
    unique = None if options.get("unique") is None else check_unique(options.get("unique"))
    within, sliding = window_of(options.get("within"), unique)
    return Guards(
        unique=unique,
        within=within,
        sliding=sliding,
        unique_in=check_unique_in(options.get("unique_in"), unique),
        join=join,
        max_pending=options.get("max_pending"),
        marks=options.get("activity") is not None or options.get("expect") is not None,
    )


def limits_of(options: TaskOptions) -> tuple[Limit | None, tuple[Limit, ...]]:
    """Return the limit of the task itself, and its named limits by name."""
    given = options.get("limit")
    limits = [] if given is None else [given] if isinstance(given, Limit) else list(given)
    own, named = [each for each in limits if each.name is None], [each for each in limits if each.name is not None]
    if len(own) > 1:
        raise ValueError("limit: a task has one limit without a name; give both numbers to one Limit")
    names = sorted(each.name or "" for each in named)
    if len(set(names)) < len(names):
        raise ValueError(f"limit: the same name twice: {', '.join(names)}")
    return own[0] if own else None, tuple(sorted(named, key=lambda each: each.name or ""))


def check_together(options: TaskOptions, fn: Callable[..., Any]) -> None:
    """Raise ValueError or TypeError for options that exclude each other, or that do not suit the function."""
    (limit, _), rate = limits_of(options), options.get("rate")
    if ((limit and limit.per_key) or (rate and rate.per_key)) and options.get("key") is None:
        raise ValueError('a limit or rate per_key needs key=, e.g. key="{path}"')
    _check_executor(options.get("executor"), fn)
    if options.get("trace", "link") not in ("link", "parent"):
        raise ValueError(f"trace={options.get('trace')!r}: choose link or parent")
    check_fail_on(options.get("fail_on"))
    for alias in options.get("aliases", ()):
        check_name(alias)
    check_overlap(options.get("overlap"), options.get("catch_up", "latest"))
    if options.get("unique_in") is not None and (options.get("activity") or options.get("key") is None):
        raise ValueError('unique_in= needs key=, e.g. key="{invoice}", and goes with no activity=')
    _check_once(options)
    if options.get("schedule") is None and timed_by(options) != Timed():
        raise ValueError(
            "overlap, catch_up, grace, start, end, buffer, times and breaker are about a schedule: "
            "give schedule= as well"
        )


def _check_executor(executor: ExecutorName | None, fn: Callable[..., Any]) -> None:
    if executor not in (None, "loop", "thread", "process"):
        raise ValueError(f"executor={executor!r}: choose loop, thread or process")
    if executor == "loop" and not inspect.iscoroutinefunction(fn):
        raise ValueError('executor="loop" needs an async function; a plain one would block the event loop')
    if executor == "thread" and inspect.iscoroutinefunction(fn):
        raise ValueError('executor="thread" needs a plain function; an async one runs on the loop')
    if executor == "process":
        check_importable(fn)


def _check_once(options: TaskOptions) -> None:
    if options.get("once") is None:
        return
    check_once(options.get("once"))
    if options.get("expect") is not None and options.get("key") is not None:
        raise ValueError("expect= with once= and key=: which of the keys is expected? Expect a step of a flow instead")
    if options.get("unique") is not None or options.get("activity") is not None:
        raise ValueError("once= says already which runs may not stand beside each other: leave out unique, activity")
