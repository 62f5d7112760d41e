"""The first line of an answer: what holds the work up; if nothing does, what happened last and when it is next."""

from collections.abc import Sequence

from rota.domain.decision import DecisionCount
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.text import plural
from rota.why.answer import LONG, REFUSALS, Fact, at, away, first_hold, quoted, refusal
from rota.why.evidence import Evidence
from rota.why.facts import about_stranded
from rota.why.schedules import deadline_words, next_words, refused_ticks, refused_words


def head_of_task(seen: Evidence, found: Sequence[Fact]) -> str:
    """Return the first fact that holds; without one, whether the task is running, may start, has ended or is idle."""
    hold = first_hold(found)
    if hold is not None and seen.working and hold.about == "run":
        return f"{_runs(seen)}; {hold.text}"
    if hold is not None:
        return hold.text
    if seen.working:
        return _runs(seen)
    if seen.stranded:
        return next(about_stranded(seen)).text
    if seen.due:
        return f"nothing holds it up: run {seen.due[-1].id} starts as soon as a seat is free"
    return _idle(seen, [_newest(seen)], seen.own_schedules)


def head_of_schedule(schedule: Schedule, seen: Evidence, found: Sequence[Fact]) -> str:
    hold = first_hold(found)
    if hold is not None:
        return hold.text
    if schedule.deadline is not None:
        return f"{deadline_words(schedule, seen.now)}; {next_words(schedule, seen.now)}"
    if refused_ticks(schedule):
        return f"{refused_words(schedule, seen)}; {next_words(schedule, seen.now)}"
    if seen.working:
        return f"{_runs(seen)}; {next_words(schedule, seen.now)}"
    if seen.stranded:
        return next(about_stranded(seen)).text
    if seen.due:
        return f"nothing holds it up: run {seen.due[-1].id} starts as soon as a seat is free"
    ended = "" if seen.last is None else ended_words(seen.last, seen.now)
    return _idle(seen, [ended], [schedule])


def ended_words(run: Run, now: float, subject: str = "its last run", limit: int = LONG) -> str:
    """Return `its last run failed 4 seconds ago (…): ValueError: bad 3`, with at most `limit` characters of the
    error."""
    became = "was cancelled" if run.state is State.CANCELLED else str(run.state)
    why = run.error or (run.reason if str(run.reason) != str(run.state) else None)
    note = f" ({run.note})" if run.note else ""
    return f"{subject} {became} {at(run.finished_at or now, now)}{f': {quoted(why, limit)}' if why else ''}{note}"


def _runs(seen: Evidence) -> str:
    newest = max(seen.working, key=lambda run: run.claimed_at or 0.0)
    verb = "is" if len(seen.working) == 1 else "are"
    begun = away(newest.claimed_at or seen.now, seen.now)
    which = "it began" if len(seen.working) == 1 else "the newest began"
    return f"{plural(len(seen.working), 'run')} {verb} running; {which} {begun} on {newest.worker}"


def _newest(seen: Evidence) -> str:
    """Return what happened last: a run ended, a tick made no run, or a submit was refused."""
    refused = [(each, ticks[-1]) for each in seen.own_schedules if (ticks := refused_ticks(each))]
    happened = [
        (tick.nominal, f"schedule {schedule.id}: {refused_words(schedule, seen)}") for schedule, tick in refused
    ]
    if (run := seen.last) is not None:
        happened.append((run.finished_at or 0.0, ended_words(run, seen.now)))
    shown = {(schedule.key, tick.reason) for schedule, tick in refused}  # these ticks were counted as decisions, too
    rows = [row for row in seen.decisions if row.reason in REFUSALS and (row.key, row.reason) not in shown]
    happened += [(row.last_at, _refused(row, seen)) for row in rows]
    return max(happened, default=(0.0, ""))[1]


def _refused(row: DecisionCount, seen: Evidence) -> str:
    often = "" if row.count == 1 else f" ({row.count:,} times by now)"
    key = f" for {row.key!r}" if row.key and seen.key is None else ""
    return f"the last submit{key} was refused {at(row.last_at, seen.now)}: {refusal(row.reason)}{often}"


def _idle(seen: Evidence, happened: Sequence[str], schedules: Sequence[Schedule]) -> str:
    parts = [part for part in happened if part]
    coming = [each for each in schedules if each.deadline is None]
    if not parts:
        parts = ["it has not run yet" if coming else "nothing was submitted"]
    if coming:
        parts.append(next_words(min(coming, key=_next_at), seen.now))
    elif not seen.live():
        parts.append("nothing waits, and no live worker knows the task")
    return "; ".join(parts)


def _next_at(schedule: Schedule) -> float:
    paused = schedule.paused or schedule.next_at is None
    return float("inf") if paused or schedule.next_at is None else schedule.next_at
