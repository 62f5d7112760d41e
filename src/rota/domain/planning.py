"""Planning: what a due schedule makes of now. Pure, and its work is bounded however long nobody was there."""

import math

from msgspec.structs import replace

from rota.domain import wire
from rota.domain.guards import Guards
from rota.domain.ids import derived
from rota.domain.run import NewRun, Origin, after
from rota.domain.schedule import CATCH_UP_CAP, Missed, Schedule, Tick
from rota.domain.timing import Timing

ON_TIME = 60.0
"""Seconds by which a tick may be late and still count as on time, for `catch_up="skip"` without a grace."""
BACKFILL_CAP = 1000


def first_tick(schedule: Schedule, now: float) -> Schedule:
    """A new schedule with its anchor and its first tick, which never lies in the past."""
    schedule = replace(schedule, anchor=math.floor(now))
    return _at(schedule, Timing.of(schedule).next_after(now))


def plan_firing(schedule: Schedule, now: float) -> Tick:
    """The step of a schedule whose time to fire has come: its runs, what it missed, and when it is next."""
    timing = Timing.of(schedule)
    first = None if schedule.next_at is None else timing.settled(schedule.next_at)
    latest = timing.latest(now)
    if first is None or latest is None or latest < first:  # its zone has changed: the tick lies ahead
        return _step(schedule, timing, first)
    then = timing.next_after(latest)
    floor = _from(timing, first, schedule.since)
    if floor is None or floor > latest:  # what fell before `since` is not owed
        return _step(schedule, timing, then)
    wanted = _wanted(schedule, timing, floor, latest, now)
    last_missed = timing.previous_before(wanted[0]) if wanted else latest
    missed = None
    if last_missed is not None and last_missed >= floor:
        missed = Missed(floor, last_missed, *timing.count(floor, last_missed))
    return _step(schedule, timing, then, wanted, missed)


def plan_move(schedule: Schedule) -> Tick | None:
    """Where a coming tick has moved to since it was computed, because its zone has changed; None if it stands."""
    timing = Timing.of(schedule)
    settled = None if schedule.next_at is None else timing.settled(schedule.next_at)
    return None if settled == schedule.next_at else _step(schedule, timing, settled)


def backfill(schedule: Schedule, first: float, last: float) -> list[NewRun]:
    """A run for every tick from `first` to `last`, each waiting for the end of the one before."""
    timing = Timing.of(schedule)
    nominals: list[float] = []
    at = timing.next_after(first - 0.00005)
    while at is not None and at <= last:
        if len(nominals) == BACKFILL_CAP:
            raise ValueError(f"more than {BACKFILL_CAP:,} ticks lie between; backfill a shorter time")
        nominals.append(at)
        at = timing.next_after(at)
    return [replace(run, at=None, expires_at=None) for run in _chain(schedule, timing, nominals)]


def run_now(schedule: Schedule, id: str, now: float) -> NewRun:
    """One more run at once, beside the ticks; the schedule's overlap holds for it too."""
    return _run(schedule, id, Origin("run_now", schedule.id, now))


def tick_id(schedule: str, nominal: float) -> str:
    """The same for everyone who plans this tick: so it makes one run, however many do."""
    return derived("tick", schedule, f"{nominal:.5f}")


def _from(timing: Timing, first: float, since: float) -> float | None:
    return first if first >= since else timing.next_after(since - 0.00005)


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


def _step(
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
            needs = (runs[-1].id,) if runs else ()
            run = replace(run, guards=Guards(marks=run.guards.reads_marks), unique_key=None, needs=needs)
        runs.append(run)
    return runs


def _run(schedule: Schedule, id: str, origin: Origin) -> NewRun:
    return NewRun(
        id=id,
        task=schedule.task,
        wire=wire.amend(schedule.body.encode(), origin),
        key=schedule.key,
        unique_key=schedule.key if schedule.guards.unique else None,
        guards=schedule.guards,
        priority=schedule.priority,
    )


def _at(schedule: Schedule, nominal: float | None) -> Schedule:
    fires_at = None if nominal is None else Timing.of(schedule).fires_at(nominal)
    return replace(schedule, next_at=nominal, fires_at=fires_at)
