"""Scheduling: make the options of a declaration into a schedule to store. A ValueError says what is wrong with them."""

from datetime import datetime
from typing import get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rota.domain.activity import DAY, Breaker
from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Guards
from rota.domain.intake import NAME_LIMIT, Options, Span, instant, new_run, seconds, timeout_of
from rota.domain.keys import check_queue, digest
from rota.domain.kinds import is_whole
from rota.domain.once import NO_ARGUMENTS
from rota.domain.period import Period
from rota.domain.policy import Lost, Policy, Retry
from rota.domain.run import DEFAULT_QUEUE, NewRun
from rota.domain.schedule import BUFFER, CatchUp, Overlap, Schedule
from rota.domain.triggers import Trigger

BUFFER_LIMIT = 1000
TIMES_LIMIT = 1_000_000


class Timed(Struct, frozen=True, kw_only=True):
    """The options of a schedule beside its trigger and its call, unchecked until the schedule is made."""

    overlap: Overlap | None = None
    catch_up: CatchUp = "latest"
    grace: Span | None = None
    start: datetime | None = None
    end: datetime | None = None
    buffer: int | None = None
    times: int | None = None
    breaker: Breaker | None = None
    once: Period | None = None
    queue: str | None = None
    timeout: Span | str | None = None
    retry: Retry | None = None
    lost: Lost | None = None


def new_schedule(
    id: str,
    trigger: Trigger,
    timed: Timed,
    task: str,
    args: bytes,
    policy: Policy,
    options: Options,
    priority: int,
    guards: Guards,
    owner: str = "",
    queue: str = DEFAULT_QUEUE,
    share: str | None = None,
) -> Schedule:
    """Return the schedule of a declaration. `policy`, `priority`, `guards` and `queue` are those of the task. For the
    queue, the timeout, the retry and `lost` of its runs, `options` (of the call) goes before `timed`, and `timed`
    before what the task says."""
    grace = None if timed.grace is None else seconds(timed.grace, "grace")
    check_grace(trigger, grace)
    if options.delay is not None or options.at is not None or options.expires is not None:
        raise ValueError(
            "a schedule says itself when its runs are due: leave out delay, at and expires, and give grace="
        )
    if options.id is not None:
        raise ValueError("a schedule makes many runs: leave out id")
    policy = policy.overridden(timeout_of(timed.timeout), timed.retry, timed.lost)
    run = new_run(id, task, args, policy, options, priority, guards, queue if timed.queue is None else timed.queue)
    if timed.once is not None and timed.overlap is not None:
        raise ValueError("once= says already that a period has one run; leave out overlap=")
    overlap = check_overlap(timed.overlap, timed.catch_up, run.guards)
    if run.guards.unique_in is not None and overlap != "skip":
        raise ValueError(
            f"unique_in={run.guards.unique_in!r} keeps runs out; overlap={overlap!r} lets them wait or come"
        )
    check_counts(timed)
    start = None if timed.start is None else instant(timed.start, "start")
    end = None if timed.end is None else instant(timed.end, "end")
    if start is not None and end is not None and end < start:
        raise ValueError(f"end={timed.end} lies before start={timed.start}")
    return Schedule(
        id=check_id(id),
        trigger=str(trigger),
        task=run.task,
        body=run.body.decode(),
        key=_about(run, id, args, timed),
        priority=run.priority,
        queue=check_queue(run.queue),
        share=share,
        guards=_broken(timed.breaker, run.guards if timed.once else _overlapping(run.guards, timed.overlap, overlap)),
        overlap=overlap,
        catch_up=timed.catch_up,
        grace=grace,
        start=start,
        end=end,
        owner=owner,
        once=timed.once,
        buffer=BUFFER if timed.buffer is None else timed.buffer,
        times=timed.times,
    )


def _about(run: NewRun, id: str, args: bytes, timed: Timed) -> str:
    """Return the key of the runs of a schedule: the key of the call, else `schedule:<id>`.

    For a task with `once=` and no key it is the digest of the arguments, so that scheduled and submitted runs share a
    mark.
    """
    if timed.once is None:
        return run.key or f"schedule:{id}"
    return run.key or (
        "" if args == NO_ARGUMENTS else digest(msgspec.json.encode(msgspec.json.decode(args), order="sorted"))
    )


def check_overlap(overlap: Overlap | None, catch_up: object, guards: Guards = Guards()) -> Overlap:  # noqa: B008
    """Return the overlap of a schedule; ValueError if it contradicts `catch_up` or the guards.

    Without an overlap: allow for `catch_up="all"`, queue for a task with `unique="queued"`, else skip.
    """
    if catch_up not in ("latest", "all", "skip"):
        raise ValueError(f"catch_up={catch_up!r}: choose latest, all or skip")
    if overlap not in (None, *get_args(Overlap)):
        raise ValueError(f"overlap={overlap!r}: choose {', '.join(get_args(Overlap))}")
    if catch_up == "all" and overlap not in (None, "allow", "buffer"):
        raise ValueError(
            f"catch_up='all' wants a run for every tick, overlap={overlap!r} leaves some out; say overlap='allow' "
            "or another catch_up"
        )
    if overlap is not None:
        return overlap
    if guards.unique == "done" and guards.within is None:
        raise ValueError(
            "unique='done' lets a schedule run once and never again; leave it out, or say overlap= as well"
        )
    if catch_up == "all" and guards.unique is not None:
        raise ValueError(
            f"catch_up='all' wants a run for every tick, the task's unique={guards.unique!r} leaves some out; "
            "say overlap='allow' or another catch_up"
        )
    if catch_up == "all":
        return "allow"
    return "queue" if guards.unique == "queued" else "skip"


def check_counts(timed: Timed) -> None:
    """Raise ValueError for wrong numbers of a schedule, and for options that need another one."""
    for name, value, most in (("buffer", timed.buffer, BUFFER_LIMIT), ("times", timed.times, TIMES_LIMIT)):
        if value is not None and not (is_whole(value) and 0 < value <= most):
            raise ValueError(f"{name}={value!r}: a whole number from 1 to {most:,}")
    if timed.buffer is not None and timed.overlap != "buffer":
        raise ValueError(f"buffer={timed.buffer} bounds the runs that wait: say overlap='buffer' as well")
    if timed.breaker is not None and timed.overlap == "buffer":
        raise ValueError("breaker= counts failures in a row, overlap='buffer' runs every tick; leave one of them out")
    if timed.breaker is not None and timed.once is not None:
        raise ValueError("breaker= counts failed runs of one key, once= gives each period a key; leave one of them out")


def _broken(breaker: Breaker | None, guards: Guards) -> Guards:
    """Return the guards with a breaker: after so many failed runs in a row, ticks make no run for a while."""
    if breaker is None:
        return guards
    cool_down = DAY if breaker.cool_down is None else breaker.cool_down
    return replace(guards, cooldowns=(*guards.cooldowns, Cooldown(breaker.failures, cool_down, Reason.BREAKER)))


def check_grace(trigger: Trigger, grace: float | None) -> None:
    if grace is None:
        return
    if grace == 0:
        raise ValueError("grace=0 lets no run start; leave it out for no bound")
    if trigger.spread().total_seconds() >= grace:
        raise ValueError(
            f"jitter={trigger.spread()} moves ticks beyond their grace of {grace:g} s, so that they never run"
        )


def _overlapping(guards: Guards, asked: Overlap | None, overlap: Overlap) -> Guards:
    if asked is None and guards.unique is not None:
        return guards  # the guards of the task decide
    if overlap == "allow":
        return replace(guards, unique=None)
    if overlap == "queue":
        return replace(guards, unique="queued", join="keep", behind=True)
    if overlap == "buffer":
        return replace(guards, unique="active", join="full")
    if overlap == "replace":
        return replace(guards, unique="queued", join="replace", behind=True)
    return replace(guards, unique="active", join="refuse")


def check_id(id: object) -> str:
    if not isinstance(id, str) or not 0 < len(id) <= NAME_LIMIT or not id.isprintable():
        raise ValueError(f"{id!r} is not a schedule's name: 1 to {NAME_LIMIT} printable characters")
    return id
