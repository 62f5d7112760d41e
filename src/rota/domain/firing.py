"""Planning: what a due schedule makes of now. Pure, and its work is bounded however long nobody was there."""

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rota.domain import codec
from rota.domain.decision import Reason
from rota.domain.guards import Guards
from rota.domain.ids import derived
from rota.domain.once import named, period_at
from rota.domain.run import NewRun, Origin, after
from rota.domain.schedule import CATCH_UP_CAP, Firing, Missed, Schedule, Tick
from rota.domain.timing import GRAIN, Timing, interval_of

ON_TIME = 60.0
"""Seconds by which a tick may be late and still count as on time, for `catch_up="skip"` without a grace."""
BACKFILL_CAP = 1000


def with_first_tick(schedule: Schedule, now: float, known: Schedule | None = None) -> Schedule:
    """A schedule as declared now, with its anchor and its first tick, which never lies in the past.

    The anchor of a known one stays as long as its interval does, whatever else is said anew: else whoever says
    something new at every start would never see it fire.
    """
    if known is None or known.anchor is None or interval_of(known) != interval_of(schedule):
        schedule = replace(schedule, anchor=math.floor(now))
        return _at(schedule, Timing.of(schedule).next_after(now))
    schedule = replace(schedule, anchor=known.anchor)
    pending = known.next_at is not None and known.next_at <= now < (known.fires_at or 0.0)  # in its jitter
    return _at(schedule, Timing.of(schedule).next_after(known.next_at - GRAIN if known.next_at and pending else now))


def due_tick(schedule: Schedule, now: float) -> Tick:
    """The step of a schedule whose time to fire has come: its runs, what it missed, and when it is next."""
    timing = Timing.of(schedule)
    first = None if schedule.next_at is None else timing.settled(schedule.next_at)
    if first is None or timing.fires_at(first) > now:  # its zone has changed: the tick lies ahead
        return _tick(schedule, timing, first)
    latest, then = first, timing.next_after(first)
    if then is not None and timing.fires_at(then) <= now:  # nobody was there for a while
        latest = timing.latest(now) or first
        then = timing.next_after(latest)
    floor = first if first >= schedule.since else timing.next_after(schedule.since - GRAIN)
    owed = floor is not None and floor <= latest  # what fell before `since` is not made up
    wanted = _wanted(schedule, timing, floor, latest, now) if floor is not None and owed else []
    missed = None
    if not wanted or wanted[0] > first:
        missed = _missed(timing, first, (timing.previous_before(wanted[0]) or first) if wanted else latest)
    return _tick(schedule, timing, then, wanted, missed)


def passed_tick(schedule: Schedule, now: float) -> Tick | None:
    """The step of a due schedule that is about to be changed: its ticks are passed over, and that is recorded."""
    timing = Timing.of(schedule)
    first = None if schedule.next_at is None else timing.settled(schedule.next_at)
    if first is None or timing.fires_at(first) > now:
        return None
    latest = timing.latest(now) or first
    return _tick(schedule, timing, timing.next_after(latest), [], _missed(timing, first, latest))


def deadline_tick(schedule: Schedule, now: float) -> tuple[Tick, float, float | None] | None:
    """The step of a deadline that has passed, its nominal time and that of the one before; None if it lies ahead, or
    fell before the schedule was as it is now."""
    tick = passed_tick(schedule, now)
    if tick is None or tick.missed is None:
        return None
    nominal = tick.missed.last
    return replace(tick, missed=None), nominal, Timing.of(schedule).previous_before(nominal)


def late(tick: Tick, nominal: float, words: str) -> Tick:
    """The same step with the word that nothing was done."""
    return replace(tick, missed=Missed(nominal, nominal, 1, reason=Reason.LATE, note=words))


def _missed(timing: Timing, first: float, last: float) -> Missed:
    return Missed(first, last, *timing.count(first, last))


def moved_tick(schedule: Schedule) -> Tick | None:
    """Where a coming tick has moved to since it was computed, because its zone has changed; None if it stands."""
    timing = Timing.of(schedule)
    settled = None if schedule.next_at is None else timing.settled(schedule.next_at)
    return None if settled == schedule.next_at else _tick(schedule, timing, settled)


def backfill(schedule: Schedule, ticks: Mapping[float, str], behind: Sequence[str]) -> list[NewRun]:
    """A run by this id for each nominal time, due at once: each waits for the end of the one before, the first for
    those that are unfinished."""
    runs: list[NewRun] = []
    for nominal, id in ticks.items():
        run = _run(schedule, id, Origin("schedule", schedule.id, nominal))
        runs.append(_behind(schedule, run, [runs[-1].id] if runs else behind))
    return runs


def ticks_between(schedule: Schedule, first: float, last: float) -> list[float]:
    """The nominal times from `first` to `last`; ValueError if there are more than a backfill may make."""
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
    """One more run at once, beside the ticks; the schedule's overlap holds for it too."""
    return _run(schedule, id, Origin("run_now", schedule.id, now))


def run_of(schedule: Schedule, firing: Firing) -> str | None:
    """The run that stands for a tick: its own, or the one that was there already. None where none was made."""
    own = tick_id(schedule.id, firing.nominal) if firing.reason is Reason.ACCEPTED else None
    return firing.run or own


def tick_id(schedule: str, nominal: float) -> str:
    """The same for everyone who plans this tick: so it makes one run, however many do."""
    return derived("tick", schedule, f"{nominal:.5f}")


def _wanted(schedule: Schedule, timing: Timing, floor: float, latest: float, now: float) -> list[float]:
    """The nominal times that shall have a run, oldest first."""
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
    return wanted[::-1]


def _too_late(schedule: Schedule, nominal: float, now: float) -> bool:
    """Would its run expire at once?"""
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
    )


def _chain(schedule: Schedule, timing: Timing, nominals: list[float]) -> list[NewRun]:
    """One run as its guards have it; several wait for each other instead, so that none is refused for the next."""
    runs: list[NewRun] = []
    for nominal in nominals:
        run = _run(schedule, tick_id(schedule.id, nominal), Origin("schedule", schedule.id, nominal))
        expires_at = None if schedule.grace is None else after(nominal, schedule.grace)
        run = replace(run, at=timing.fires_at(nominal), expires_at=expires_at)
        if len(nominals) > 1:
            run = _behind(schedule, run, [runs[-1].id] if runs else [])
        runs.append(run)
    return runs


def _behind(schedule: Schedule, run: NewRun, others: Sequence[str]) -> NewRun:
    """One of several, each behind the one before. What is done once per period is still refused where it is done."""
    if schedule.once is not None:
        return replace(run, needs=tuple(others))
    return replace(run, guards=Guards(marks=run.guards.reads_marks), unique_key=None, needs=tuple(others))


def _run(schedule: Schedule, id: str, origin: Origin) -> NewRun:
    key, guards = schedule.key, schedule.guards
    if schedule.once is not None:
        period = period_at(schedule.once, origin.nominal or 0.0)
        key, guards, origin = named(key, period), replace(guards, unique="done"), replace(origin, period=period)
    elif schedule.overlap == "queue" and guards.behind:
        guards = replace(guards, join="wait")  # here, not in the store: schedules that are there already have it so too
    return NewRun(
        id=id,
        task=schedule.task,
        body=codec.amend(schedule.body.encode(), origin),
        key=key,
        unique_key=key if guards.unique else None,
        guards=guards,
        priority=schedule.priority,
    )


def _at(schedule: Schedule, nominal: float | None) -> Schedule:
    fires_at = None if nominal is None else Timing.of(schedule).fires_at(nominal)
    return replace(schedule, next_at=nominal, fires_at=fires_at)
