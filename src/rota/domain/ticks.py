"""Firing: the tick of a due schedule. Pure, and bounded work however long no worker ran."""

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.ended import with_callbacks
from rota.domain.guards import Guards
from rota.domain.ids import derived
from rota.domain.once import named, period_at
from rota.domain.run import NewRun, Origin, after
from rota.domain.schedule import CATCH_UP_CAP, FIRINGS_KEPT, Firing, Missed, Schedule, Tick
from rota.domain.starts import is_at_start, with_last_start
from rota.domain.timing import GRAIN, Timing, cadence_of

ON_TIME = 60.0
"""Seconds by which a tick may be late and still make its run, for `catch_up="skip"` without a grace."""
BACKFILL_CAP = 1000


def with_first_tick(schedule: Schedule, now: float, known: Schedule | None = None) -> Schedule:
    """Return `schedule`, declared at `now`, with its anchor and its first tick. The first tick is never in the past.

    If the store already has it (`known`) with the same interval, the anchor stays, whatever else changes. Otherwise a
    schedule whose declaration changes at every start of an app would never fire.
    """
    if is_at_start(schedule):
        return with_last_start(schedule, now, known)
    if known is None or known.anchor is None or cadence_of(known) != cadence_of(schedule):
        schedule = replace(schedule, anchor=math.floor(now))
        return _at(schedule, Timing.of(schedule).next_after(now))
    schedule = replace(schedule, anchor=known.anchor)
    pending = known.next_at is not None and known.next_at <= now < (known.fires_at or 0.0)  # in its jitter
    return _at(schedule, Timing.of(schedule).next_after(known.next_at - GRAIN if known.next_at and pending else now))


def due_tick(schedule: Schedule, now: float) -> Tick:
    """Return the tick of a schedule whose time to fire has come: its runs, the missed ticks, the next nominal time."""
    timing = Timing.of(schedule)
    first = None if schedule.next_at is None else timing.settled(schedule.next_at)
    if first is None or timing.fires_at(first) > now:  # the rules of its zone have changed: the tick is in the future
        return _tick(schedule, timing, first)
    latest, then = first, timing.next_after(first)
    if then is not None and timing.fires_at(then) <= now:  # no worker ran for a while
        latest = timing.latest(now) or first
        then = timing.next_after(latest)
    floor = first if first >= schedule.since or is_at_start(schedule) else timing.next_after(schedule.since - GRAIN)
    owed = floor is not None and floor <= latest  # ticks before `since` are not made up
    wanted = _wanted(schedule, timing, floor, latest, now) if floor is not None and owed else []
    missed = None
    if not wanted or wanted[0] > first:
        missed = _missed(timing, first, (timing.previous_before(wanted[0]) or first) if wanted else latest)
    return _tick(schedule, timing, then, wanted, missed)


def passed_tick(schedule: Schedule, now: float) -> Tick | None:
    """Return a tick that records the due ticks of a schedule as missed, before the schedule is changed; None if none is
    due."""
    timing = Timing.of(schedule)
    first = None if schedule.next_at is None else timing.settled(schedule.next_at)
    if first is None or timing.fires_at(first) > now:
        return None
    latest = timing.latest(now) or first
    return _tick(schedule, timing, timing.next_after(latest), [], _missed(timing, first, latest))


def deadline_tick(schedule: Schedule, now: float) -> tuple[Tick, float, float | None] | None:
    """Return the tick of a deadline that has passed, its nominal time, and the nominal time before it.

    None if the deadline is in the future, or was before the schedule had its present form.
    """
    tick = passed_tick(schedule, now)
    if tick is None or tick.missed is None:
        return None
    nominal = tick.missed.last
    return replace(tick, missed=None), nominal, Timing.of(schedule).previous_before(nominal)


def late(tick: Tick, nominal: float, words: str) -> Tick:
    """Return `tick` with the message `words`: the deadline at `nominal` was missed."""
    return replace(tick, missed=Missed(nominal, nominal, 1, reason=Reason.LATE, note=words))


def _missed(timing: Timing, first: float, last: float) -> Missed:
    return Missed(first, last, *timing.count(first, last))


def moved_tick(schedule: Schedule) -> Tick | None:
    """Return a tick that moves the next nominal time if the rules of its zone have changed it; None if they have
    not."""
    timing = Timing.of(schedule)
    settled = None if schedule.next_at is None else timing.settled(schedule.next_at)
    return None if settled == schedule.next_at else _tick(schedule, timing, settled)


def next_from(schedule: Schedule, at: float, note: str | None = None) -> Tick | None:
    """Return a tick that makes no run and moves the next nominal time to the first one at or after `at`; None if there
    is none. The schedule gets the `note`."""
    timing = Timing.of(schedule)
    then = timing.next_after(at - GRAIN)
    return None if then is None else replace(_tick(schedule, timing, then), note=note)


def is_postponed(schedule: Schedule, now: float) -> bool:
    """Return whether the next tick is later than the next one of the trigger: somebody has moved it."""
    if schedule.next_at is None or schedule.deadline is not None:
        return False
    try:
        natural = Timing.of(schedule).next_after(now)
    except ValueError:
        return False
    return natural is not None and natural < schedule.next_at


def backfill(schedule: Schedule, ticks: Mapping[float, str], behind: Sequence[str]) -> list[NewRun]:
    """Return a run, due at once, for each nominal time in `ticks`; the values are the ids of the runs.

    Each run waits for the end of the run before it, and the first one for the runs `behind`.
    """
    runs: list[NewRun] = []
    for nominal, id in ticks.items():
        run = _run(schedule, id, Origin("schedule", schedule.id, nominal))
        runs.append(_behind(schedule, run, [runs[-1].id] if runs else behind))
    return runs


def ticks_between(schedule: Schedule, first: float, last: float) -> list[float]:
    """Return the nominal times from `first` to `last`. Raise ValueError if there are more than BACKFILL_CAP."""
    timing = Timing.of(schedule)
    nominals: list[float] = []
    at = timing.next_after(first - GRAIN)
    while at is not None and at <= last:
        if len(nominals) == BACKFILL_CAP:
            raise ValueError(f"more than {BACKFILL_CAP:,} ticks lie between; backfill a shorter time")
        nominals.append(at)
        at = timing.next_after(at)
    return nominals


def run_now(schedule: Schedule, id: str, now: float) -> NewRun:
    """Return a run that is due now and belongs to no tick. The overlap of the schedule applies to it too."""
    run = _run(schedule, id, Origin("run_now", schedule.id, now))
    return _behind(schedule, run, _earlier(schedule)) if schedule.overlap == "buffer" else run


def run_of(schedule: Schedule, firing: Firing) -> str | None:
    """Return the id of the run that answers a tick: its own run or the earlier run that it joined; None without a
    run."""
    own = tick_id(schedule.id, firing.nominal) if firing.reason is Reason.ACCEPTED else None
    return firing.run or own


def tick_id(schedule: str, nominal: float) -> str:
    """Return the id of the run of a tick. Every worker that fires the tick computes the same id, so it makes one
    run."""
    return derived("tick", schedule, f"{nominal:.5f}")


def _wanted(schedule: Schedule, timing: Timing, floor: float, latest: float, now: float) -> list[float]:
    """Return the nominal times from `floor` to `latest` that get a run, oldest first."""
    if _too_late(schedule, latest, now):
        return []
    if schedule.catch_up == "skip" and schedule.grace is None and now - timing.fires_at(latest) > ON_TIME:
        return []
    wanted = [latest]
    if schedule.catch_up == "all":
        while len(wanted) < CATCH_UP_CAP:
            before = timing.previous_before(wanted[-1])
            if before is None or before < floor or _too_late(schedule, before, now):
                break
            wanted.append(before)
    return wanted[::-1][: schedule.left]


def _too_late(schedule: Schedule, nominal: float, now: float) -> bool:
    """Return whether the run of this nominal time would expire at once."""
    return schedule.grace is not None and after(nominal, schedule.grace) <= now


def _tick(
    schedule: Schedule,
    timing: Timing,
    then: float | None,
    nominals: list[float] | None = None,
    missed: Missed | None = None,
) -> Tick:
    return Tick(
        schedule.id,
        schedule.version,
        schedule.next_at,
        then,
        None if then is None else timing.fires_at(then),
        tuple(_chain(schedule, timing, nominals or [])),
        tuple(nominals or ()),
        missed,
        schedule.left,
    )


def _chain(schedule: Schedule, timing: Timing, nominals: list[float]) -> list[NewRun]:
    """Return the runs of the nominal times. A single run keeps its guards. If there are several, each run needs the end
    of the run before; their guards would refuse all but one.

    The runs of a buffer take the places of a ring in turn, by their unique keys. A place is taken until its run has
    ended. Since the runs end in their order, the next place is free if and only if the buffer is not full.
    """
    runs: list[NewRun] = []
    for nominal in nominals:
        run = _run(schedule, tick_id(schedule.id, nominal), Origin("schedule", schedule.id, nominal))
        expires_at = None if schedule.grace is None else after(nominal, schedule.grace)
        run = replace(run, at=timing.fires_at(nominal), expires_at=expires_at)
        if schedule.overlap == "buffer":
            place = (schedule.made + len(runs)) % (schedule.buffer + 1)
            earlier = (*_earlier(schedule), *(each.id for each in runs))[-FIRINGS_KEPT:]
            run = replace(run, unique_key=f"{run.key}#{place}", needs=earlier)
        elif len(nominals) > 1:
            run = _behind(schedule, run, [runs[-1].id] if runs else [])
        runs.append(run)
    return runs


def _earlier(schedule: Schedule) -> tuple[str, ...]:
    """Return the last runs that the ticks of a schedule made. A need of a run that has ended is met."""
    accepted = (firing for firing in schedule.recent if firing.reason is Reason.ACCEPTED)
    return tuple(tick_id(schedule.id, firing.nominal) for firing in accepted)


def _behind(schedule: Schedule, run: NewRun, others: Sequence[str]) -> NewRun:
    """Return `run` so that it waits for the end of the runs `others` and no guard refuses it for their sake.

    A run that is done once per period keeps its guard, so that a period that is done is refused.
    """
    if schedule.once is not None:
        return replace(run, needs=tuple(others))
    return replace(run, guards=Guards(marks=run.guards.reads_marks), unique_key=None, needs=tuple(others))


def _run(schedule: Schedule, id: str, origin: Origin) -> NewRun:
    key, guards = schedule.key, schedule.guards
    if schedule.once is not None:
        period = period_at(schedule.once, origin.nominal or 0.0)
        key, guards, origin = named(key, period), replace(guards, unique="done"), replace(origin, period=period)
    elif schedule.overlap == "queue" and guards.behind:
        guards = replace(guards, join="wait")  # set here, so that it also applies to schedules that are stored already
    run = NewRun(
        id=id,
        task=schedule.task,
        body=codec.amend(schedule.body.encode(), origin),
        key=key,
        unique_key=key if guards.unique else None,
        guards=guards,
        priority=schedule.priority,
        queue=schedule.queue,
        share=schedule.share,
    )
    # most schedules have no callbacks: their bodies are not read here
    on_end = codec.decode_or_blank(schedule.body).on_end if '"on_end"' in schedule.body else ()
    return with_callbacks(run, on_end) if on_end else run


def _at(schedule: Schedule, nominal: float | None) -> Schedule:
    fires_at = None if nominal is None else Timing.of(schedule).fires_at(nominal)
    return replace(schedule, next_at=nominal, fires_at=fires_at)
