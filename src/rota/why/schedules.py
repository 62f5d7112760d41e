"""Facts about schedules: when the next tick is, and what became of the last ones."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from rota.domain.decision import DecisionCount, Reason
from rota.domain.run import Run
from rota.domain.schedule import Firing, Schedule
from rota.domain.ticks import is_postponed
from rota.domain.timing import Timing
from rota.domain.triggers import Trigger
from rota.why.answer import Fact, at, away, refusal
from rota.why.evidence import Evidence
from rota.why.facts import LATE, decided, noted
from rota.why.links import to_schedule

MADE = (Reason.ACCEPTED, Reason.JOINED)


def about_schedules(seen: Evidence) -> Iterator[Fact]:
    """Report the schedules. A schedule makes runs later: it holds nothing up while a run is queued or running."""
    busy = bool(seen.unfinished)
    for schedule in seen.own_schedules:
        for fact in about_schedule(schedule, seen):
            ended = schedule.ended and not schedule.paused
            yield replace(fact, holds=fact.holds and not busy and not ended)


def about_schedule(schedule: Schedule, seen: Evidence) -> Iterator[Fact]:
    link = to_schedule(schedule.id)
    return (replace(fact, link=link) for fact in _facts(schedule, seen))


def _facts(schedule: Schedule, seen: Evidence) -> Iterator[Fact]:
    if schedule.paused:
        words = decided(_pause(schedule, seen), seen.now) or noted(schedule.note)
        yield Fact("schedule", f"{_name(schedule)} is paused{words}; `rota schedules resume {schedule.id}`", True)
    elif schedule.next_at is None:
        yield Fact("schedule", next_words(schedule, seen.now), schedule.ended)
    else:
        yield _next_tick(schedule, schedule.next_at, seen)
    if schedule.deadline is not None:
        yield Fact("schedule", f"{_name(schedule)} makes no runs: {deadline_words(schedule, seen.now)}")
    elif schedule.recent:
        yield _last_ticks(schedule, seen)


def coming(schedules: Iterable[Schedule], now: float) -> list[float]:
    """Return when the schedules that make runs fire next."""
    makers = [each for each in schedules if each.deadline is None and not each.paused]
    times = (each.next_at if each.fires_at is None else each.fires_at for each in makers)
    return [time for time in times if time is not None and time > now]


def deadline_words(schedule: Schedule, now: float) -> str:
    """Return what a deadline looks for, and when it last found no success."""
    late = [firing for firing in schedule.recent if firing.reason is Reason.LATE]
    was = f"it was late last {at(late[-1].nominal, now)}" if late else "it was never late so far"
    return f"it looks whether {_expected(schedule)} was done; {was}"


def refused_ticks(schedule: Schedule) -> tuple[Firing, ...]:
    """Return the last ticks in a row that made no run; empty if the last tick made one."""
    found: list[Firing] = []
    for firing in reversed(schedule.recent):
        if schedule.deadline is not None or firing.reason in MADE:
            break
        found.append(firing)
    return tuple(reversed(found))


def in_the_way(schedule: Schedule, seen: Evidence) -> Run | None:
    """Return the running run because of which the last tick made none."""
    last = schedule.recent[-1].reason if schedule.recent else None
    return seen.running[-1] if last is Reason.ALREADY_RUNNING and seen.running else None


def refused_words(schedule: Schedule, seen: Evidence) -> str:
    """Return `its last 5 ticks made no run, the last one 4 seconds ago (…): an earlier run still ran
    (already_running)`."""
    ticks = refused_ticks(schedule)
    last = ticks[-1]
    which = "its last tick" if len(ticks) == 1 else f"its last {len(ticks)} ticks"
    when = f", {at(last.nominal, seen.now)}," if len(ticks) == 1 else ""
    since = "" if len(ticks) == 1 else f", the last one {at(last.nominal, seen.now)}"
    words = f"{which}{when} made no run{since}: {refusal(last.reason)}"
    if (run := in_the_way(schedule, seen)) is not None:
        words += f"; run {run.id} began {away(run.claimed_at or seen.now, seen.now)} and still runs"
    return words


def next_words(schedule: Schedule, now: float) -> str:
    """Return in few words when the schedule fires again."""
    if schedule.paused:
        return f"{_name(schedule)} is paused"
    if schedule.ended:
        return f"{_name(schedule)} ({schedule.trigger}) has no tick left"
    if schedule.next_at is None:
        return f"{_name(schedule)} fires {Trigger.parse(schedule.trigger).describe()}"
    return f"{_name(schedule)} {'is next' if schedule.next_at > now else 'was due'} {at(schedule.next_at, now)}"


def _last_ticks(schedule: Schedule, seen: Evidence) -> Fact:
    if refused_ticks(schedule):
        text = f"{_name(schedule)}: {refused_words(schedule, seen)}"
        return Fact("schedule", text, holds=in_the_way(schedule, seen) is not None)
    last = schedule.recent[-1]
    became = "made a run" if last.reason is Reason.ACCEPTED else "joined a run that waited"
    return Fact("schedule", f"{_name(schedule)}: its last tick, {at(last.nominal, seen.now)}, {became}")


def _next_tick(schedule: Schedule, nominal: float, seen: Evidence) -> Fact:
    """Report the next tick. Any worker fires a due schedule, whether it knows the task or not."""
    words = f"{_name(schedule)} ({_words(schedule)})"
    late = seen.now - (nominal if schedule.fires_at is None else schedule.fires_at)
    if late < 0:
        moved = (
            f"; its ticks before that are left out{noted(schedule.note)}" if is_postponed(schedule, seen.now) else ""
        )
        return Fact("schedule", f"{words} is next {at(nominal, seen.now)}{moved}")
    due = f"{words} was due {at(nominal, seen.now)}"
    if late <= LATE or not seen.fleet.alive:
        return Fact("schedule", due)
    return Fact("schedule", f"{due}, and nobody has fired it: see the log of the workers", holds=True)


def _expected(schedule: Schedule) -> str:
    about = schedule.deadline.about if schedule.deadline else None
    period = schedule.deadline.period if schedule.deadline else None
    return f"{about or schedule.task}{f' of the {period.unit}' if period else ''}"


def _pause(schedule: Schedule, seen: Evidence) -> DecisionCount | None:
    """Return who paused the schedule, and when. Schedules and runs of one key share the row of the last pause. If that
    row may belong to another of them, return None: then only the note is known."""
    alike = (schedule.key, True, schedule.note)
    if any((other.key, other.paused, other.note) == alike for other in seen.schedules if other.id != schedule.id):
        return None
    rows = (row for row in seen.decisions if row.reason is Reason.PAUSED and row.key == schedule.key)
    return next((row for row in rows if row.run is None and row.note == schedule.note), None)


def _name(schedule: Schedule) -> str:
    return f"schedule {schedule.id}" if schedule.deadline is None else f"deadline {schedule.id}"


def _words(schedule: Schedule) -> str:
    try:
        return Timing.of(schedule).trigger.describe()
    except ValueError:
        return schedule.trigger
