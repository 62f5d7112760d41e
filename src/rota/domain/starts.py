"""Starts: schedules with the trigger AtStart, which fire when workers start. Their `start` is the last start."""

from collections.abc import Iterable

from msgspec.structs import replace

from rota.domain.once import check_period, named
from rota.domain.run import after
from rota.domain.schedule import Schedule
from rota.domain.scheduling import Timed
from rota.domain.timing import Timing
from rota.domain.triggers.at_start import AT_START, AtStart

EACH_VERSION = str(AtStart(each="version"))


def is_at_start(schedule: Schedule) -> bool:
    return schedule.trigger.startswith(AT_START)


def waits_for_start(schedule: Schedule) -> bool:
    """Return whether a start of a worker fires the schedule, as opposed to a new version of the app."""
    return is_at_start(schedule) and not schedule.trigger.startswith(EACH_VERSION)


def at_start(made: Schedule, timed: Timed, version: str | None) -> Schedule:
    """Return the schedule that code declares with AtStart. Raise ValueError for options that have no meaning there."""
    if not made.owner:
        raise ValueError("a start of the code fires AtStart: declare it in code, as schedule= of a task")
    for option in ("start", "end", "times", "once"):
        if getattr(timed, option) is not None:
            raise ValueError(f"AtStart does not fire by the clock: leave out {option}=")
    if waits_for_start(made):
        return made
    if not version:
        raise ValueError(f"'{made.trigger}' needs the version of the app: Rota(version=…), or ROTA_VERSION")
    guards = replace(made.guards, unique="done")
    return replace(made, key=named(made.key, check_period(version)), guards=guards)


def with_last_start(schedule: Schedule, now: float, known: Schedule | None) -> Schedule:
    """Return a declared schedule with its last start. A new version of the app, which the key names, starts now."""
    if waits_for_start(schedule) or (known is not None and known.key == schedule.key):
        return schedule if known is None else replace(schedule, start=known.start)
    return begun(schedule, now)


def begun(schedule: Schedule, now: float) -> Schedule:
    """Return the schedule with a start at `now`: its tick is due, perhaps after a jitter."""
    start = after(now, 0)
    schedule = replace(schedule, start=start, next_at=start)
    return replace(schedule, fires_at=Timing.of(schedule).fires_at(start))


def is_first(schedule: Schedule, now: float, alive: bool, seen: Iterable[float], silent: float) -> bool:
    """Return whether a worker that starts now is the first one that knows the task of `schedule`.

    `alive`: a live worker knows the task. `seen`: when the others were last seen. The tick of a start comes before the
    first claim of its worker. So a start of the last `silent` seconds after which no worker was seen is the start of a
    worker that has not claimed yet: it counts as alive.
    """
    if alive or schedule.paused:
        return False
    last = schedule.start
    return last is None or last <= now - silent or any(at >= last for at in seen)
