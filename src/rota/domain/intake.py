"""Intake: make the options of a call into a run to store. A ValueError says what is wrong with them."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from rota.domain import codec
from rota.domain.activity import DAY
from rota.domain.ended import with_callbacks
from rota.domain.fan import is_fan_need
from rota.domain.guards import Guards, Join, Sliding, Unique
from rota.domain.headers import check_headers
from rota.domain.ids import check_own_id, fingerprint, retry_id
from rota.domain.keys import check_key, check_queue, digest
from rota.domain.policy import FAR, Lost, Policy, Retry
from rota.domain.run import DEFAULT_QUEUE, Callback, NewRun, Origin, Run, after
from rota.domain.triggers.durations import parse_duration
from rota.domain.tuning import Retention, check_retention

PRIORITY = 100
NAME_LIMIT = 200
SHARED_LIMIT = 100
OWN_WINDOW = 7 * DAY
"""The most seconds of a window that a submit gives; a store remembers a success for longer than that."""
FIRST_DAY, LAST_DAY = 0.0, 253_402_300_799.0  # 1970 to 9999, what datetime can show

Span = float | int | timedelta
"""Seconds, or a timedelta."""


class Options(Struct, frozen=True, kw_only=True):
    """The options of `using(...)`, unchecked until the run is made."""

    delay: Span | None = None
    at: datetime | None = None
    expires: Span | datetime | None = None
    priority: int | None = None
    key: str | None = None
    unique: Unique | None = None
    within: Span | Sliding | None = None
    join: Join | None = None
    queue: str | None = None
    timeout: Span | str | None = None
    retry: Retry | None = None
    lost: Lost | None = None
    headers: Mapping[str, str] | None = None
    id: str | None = None
    on_success: Callback | None = None
    on_failure: Callback | None = None
    on_cancel: Callback | None = None
    origin: str = "submit"

    def callbacks(self, declared: tuple[Callback, ...]) -> tuple[Callback, ...]:
        """Return the callbacks of a run: those of the submit, and those of the task for other states."""
        if self.on_success is None and self.on_failure is None and self.on_cancel is None:
            return declared
        own = [each for each in (self.on_success, self.on_failure, self.on_cancel) if each is not None]
        states = {each.state for each in own}
        return (*(each for each in declared if each.state not in states), *own)


_NONE = Options()
_SUBMIT = Origin()


def new_run(
    id: str,
    task: str,
    args: bytes,
    policy: Policy,
    options: Options,
    priority: int = 0,
    guards: Guards | None = None,
    queue: str = DEFAULT_QUEUE,
    share: str | None = None,
) -> NewRun:
    """Return the run of a submit. `policy`, `priority`, `guards` and `queue` are those of the task; `options` can
    override them, and the `id`. `share` is filled already."""
    if len(args) > codec.ARGS_LIMIT:
        raise ValueError(
            f"the arguments of {task} take {len(args):,} bytes, more than the {codec.ARGS_LIMIT:,} a run may carry; "
            "store the data elsewhere and pass its name"
        )
    guards = guards or Guards()
    # the usual submit, without the checks below: they have nothing to check
    if options == _NONE and guards.unique is None:
        body = codec.encode(args, _SUBMIT, policy)
        return NewRun(
            id=id, task=check_name(task), body=body, guards=guards, priority=priority, queue=queue, share=share
        )
    expires = options.expires
    policy = policy.overridden(timeout_of(options.timeout), options.retry, options.lost)
    headers = None if options.headers is None else check_headers(options.headers)
    if options.unique is not None:
        guards = replace(guards, unique=check_unique(options.unique))
    if options.within is not None:
        guards = _own_window(guards, options.within)
    if options.join is not None:
        guards = replace(guards, join=check_join(options.join, guards.unique))
    key = None if options.key is None else check_key(options.key)
    body = codec.encode(args, Origin(options.origin), policy, headers=headers)
    if guards.unique_in is not None and guards.unique is not None:
        body = codec.with_unique_in(body, guards.unique_in)
    return NewRun(
        id=id if options.id is None else check_own_id(options.id),
        fingerprint=None if options.id is None else fingerprint(task, args),
        task=check_name(task),
        body=body,
        key=key,
        unique_key=(key or digest(args)) if guards.unique else None,
        guards=guards,
        priority=check_priority(priority if options.priority is None else options.priority),
        queue=check_queue(queue if options.queue is None else options.queue),
        share=share,
        delay=0.0 if options.delay is None else seconds(options.delay, "delay"),
        at=_start(options),
        expires_at=instant(expires, "expires") if isinstance(expires, datetime) else None,
        expires_after=None if expires is None or isinstance(expires, datetime) else seconds(expires, "expires"),
    )


def retry_of(run: Run) -> NewRun:
    """Return a new run that repeats `run`. Its id derives from the id of `run`, so a second retry makes no second run.

    The new run is due now, but a step of a flow keeps its needs and a run of a plan keeps its planned time. The retry
    of a gather does not wait for children: it gets the results that there are.
    """
    new = NewRun(
        id=retry_id(run.id),
        task=run.task,
        key=run.key,
        unique_key=run.unique_key,
        guards=_guards_of(run),
        priority=run.priority,
        queue=run.queue,
        share=run.share,
        body=codec.amend(run.body, replace(run.origin, kind="retry", of=run.id)),
        group=None if run.member is None else run.member.group,
        needs=tuple(need for need in run.needs if not is_fan_need(need)),
        at=run.origin.nominal if run.origin.kind == "plan" else None,
    )
    return with_callbacks(new, run.on_end) if run.on_end else new


def _guards_of(run: Run) -> Guards:
    """Return the guards of a retry: it has the unique key of the run it repeats, and writes the same mark."""
    if run.unique_key is None:
        return Guards(marks=run.writes_mark)
    return Guards(unique="active", join="refuse", marks=run.writes_mark, unique_in=run.unique_in)


def check_join(join: object, unique: Unique | None) -> Join:
    """Return the join of one submit. It would do nothing for a run that has no equals."""
    if join not in ("keep", "push", "set", "refuse"):
        raise ValueError(f"join={join!r}: choose keep, push, set or refuse")
    if unique is None:
        raise ValueError(f"join={join!r} needs unique=: without it, no run is equal to another")
    return join


def check_unique(unique: object) -> Unique:
    if unique not in ("queued", "active", "done"):
        raise ValueError(f"unique={unique!r}: choose 'queued', 'active' or 'done'")
    return unique


def window_of(within: "Span | Sliding | None", unique: Unique | None) -> tuple[float | None, bool]:
    """Return the seconds of a window, and whether it is a sliding one."""
    if within is None:
        return None, False
    span = within.seconds if isinstance(within, Sliding) else within
    value = seconds(span, "within")
    if value == 0:
        raise ValueError("within=0 remembers no success; leave out within= and say unique='active'")
    if unique != "done":
        raise ValueError(f"within= says how long a success keeps out others: write unique='done', not {unique!r}")
    return value, isinstance(within, Sliding)


def _own_window(guards: Guards, within: Span | Sliding) -> Guards:
    """Return the guards of a submit that has a window of its own. Only a task can have a longer one than OWN_WINDOW,
    because its declaration says how long a store remembers."""
    seconds, sliding = window_of(within, guards.unique)
    if seconds is not None and seconds > max(OWN_WINDOW, guards.within or 0.0):
        raise ValueError(f"within={within!r} of a submit: at most {OWN_WINDOW:,.0f} seconds; say it on the task")
    return replace(guards, within=seconds, sliding=sliding)


def check_unique_in(name: object, unique: Unique | None) -> str | None:
    """Return the name under which tasks share their unique keys."""
    if name is None:
        return None
    if not isinstance(name, str) or not 0 < len(name) <= SHARED_LIMIT or not name.isprintable() or " " in name:
        raise ValueError(f"unique_in={name!r}: 1 to {SHARED_LIMIT} printable characters without spaces")
    if unique not in ("active", "done"):
        raise ValueError(f"unique_in={name!r} needs unique='active' or unique='done', not {unique!r}")
    return name


@lru_cache(maxsize=4096)
def check_name(name: str) -> str:
    """Return the name of a task if every store, log line and URL can carry it; else raise ValueError."""
    if not name or len(name) > NAME_LIMIT or any(ord(c) < 33 or 0xD800 <= ord(c) < 0xE000 for c in name):
        raise ValueError(f"{name!r} is not a task name: 1 to {NAME_LIMIT} characters without spaces")
    return name


def check_priority(priority: object) -> int:
    if isinstance(priority, bool) or not isinstance(priority, int) or not -PRIORITY <= priority <= PRIORITY:
        raise ValueError(f"priority={priority!r}: a whole number from -{PRIORITY} to {PRIORITY}, higher goes first")
    return priority


def seconds(span: object, name: str) -> float:
    value = span.total_seconds() if isinstance(span, timedelta) else span
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise TypeError(f"{name}={span!r}: a number of seconds or a timedelta")
    if not 0 <= value <= FAR:  # also refuses NaN
        raise ValueError(f"{name}={span!r}: from 0 seconds to ten years")
    return float(value)


def timeout_of(timeout: Span | str | None) -> float | None:
    """Return a timeout in seconds. It may be a text as in the settings: "30s", "1h30m"."""
    if timeout is None:
        return None
    try:
        return seconds(parse_duration(timeout) if isinstance(timeout, str) else timeout, "timeout")
    except ValueError as error:
        raise ValueError(f"timeout={timeout!r}: {error}" if isinstance(timeout, str) else str(error)) from None


def retention_of(keep: Span | str | Retention | None) -> Retention | None:
    """Return the retention of a task. A span is how long every ended run is kept, as a text also "30s" or "7d"."""
    if keep is None or isinstance(keep, Retention):
        return keep and check_retention(keep)
    try:
        age = seconds(parse_duration(keep) if isinstance(keep, str) else keep, "keep")
    except ValueError as error:
        raise ValueError(f"keep={keep!r}: {error}" if isinstance(keep, str) else str(error)) from None
    return Retention(succeeded=age, failed=age, least=0)


def instant(moment: object, name: str) -> float:
    if not isinstance(moment, datetime):
        raise TypeError(f"{name}={moment!r}: an aware datetime")
    if moment.tzinfo is None:
        raise ValueError(f"{name}={moment!r} has no time zone; use e.g. datetime.now(UTC) or ZoneInfo('Europe/Paris')")
    value = moment.timestamp()
    if not FIRST_DAY <= value <= LAST_DAY:
        raise ValueError(f"{name}={moment!r}: from 1970 to 9999")
    return after(value, 0)


def _start(options: Options) -> float | None:
    if options.at is None:
        return None
    if options.delay is not None:
        raise ValueError("delay= and at= both say when the run is due; give one")
    return instant(options.at, "at")
