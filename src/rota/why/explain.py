"""Explain: from a name to an answer."""

from rota.client.fleet import is_stranded, stranded_words
from rota.domain.decision import Reason
from rota.domain.joins import REPLACED
from rota.domain.run import Attempt, Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.domain.text import did_you_mean
from rota.errors import UnknownTask
from rota.store import Reads, RowQuery, RunQuery
from rota.why import facts
from rota.why.answer import Fact, Why, at, away, changes_at, first_hold
from rota.why.evidence import Evidence, gather
from rota.why.headlines import ended_words, head_of_schedule, head_of_task
from rota.why.links import linked, to_run
from rota.why.needs import again
from rota.why.schedules import about_schedule, about_schedules, coming

WHOLE = 4_000
"""Characters of an error: all that a run keeps of it."""


async def why(store: Reads, subject: str, key: str | None = None) -> Why:
    """Say what keeps a run, a task, one key of a task, or a schedule from running; if nothing does, what it did last
    and when it is next."""
    if key is None:
        runs = (await store.runs(RunQuery(ids=[subject]))).runs
        if runs:
            return await _of_run(store, runs[0])
    seen = await gather(store, subject, key)
    if seen.known:
        return _of_task(seen)
    schedules = (await store.rows(Schedule, RowQuery(names=[subject]))).items
    if schedules:
        return await _of_schedule(store, schedules[0])
    raise UnknownTask(f"nothing is known of {subject}{await _resembling(store, subject)}")


def _of_task(seen: Evidence) -> Why:
    wanted = bool(seen.waiting or seen.stranded)
    active = any(each.next_at is not None and not each.paused for each in seen.own_schedules)
    found = [
        *facts.about_stranded(seen),
        facts.about_workers(seen, wanted or active),
        *facts.about_clocks(seen),
        *facts.about_blocked(seen, seen.running),
        *facts.about_task(seen),
        *facts.about_rate(seen, seen.unfinished),
        *facts.about_key(seen),
        *facts.about_seats(seen, seen.waiting),
        *facts.about_queue(seen),
        *about_schedules(seen),
        *facts.about_decisions(seen),
        *facts.about_last(seen),
    ]
    subject = seen.task if seen.key is None else f"{seen.task} {seen.key}"
    ticks = [] if seen.unfinished else coming(seen.own_schedules, seen.now)
    links = linked(found, seen.task, seen.key, seen.first)
    return Why(subject, "task", head_of_task(seen, found), links, changes_at(found, ticks))


async def _of_schedule(store: Reads, schedule: Schedule) -> Why:
    seen = await gather(store, schedule.task, schedule.key)
    ended = schedule.ended and not seen.waiting and not seen.stranded
    found = [
        *about_schedule(schedule, seen),
        *facts.about_stranded(seen),
        facts.about_workers(seen, not ended),
        *facts.about_task(seen),
        *facts.about_rate(seen, seen.unfinished),
        *facts.about_seats(seen, seen.waiting),
        *facts.about_queue(seen),
        *facts.about_decisions(seen),
        *facts.about_last(seen),
    ]
    changes = changes_at(found, coming([schedule], seen.now))
    links = linked(found, schedule.task, schedule.key, seen.first)
    return Why(schedule.id, "schedule", head_of_schedule(schedule, seen, found), links, changes)


async def _of_run(store: Reads, run: Run) -> Why:
    seen = await gather(store, run.task, run.key, run)
    if run.state.final or run.state is State.RUNNING:
        own = _running(run, seen) if run.state is State.RUNNING else _ended(run, seen)
        found = [*own, *await _stopped(store, run, seen.now), *facts.about_origin(run)]
        otherwise = own[-1].text
    else:
        found = [
            *facts.about_waiting(run, seen),
            *facts.about_share(run, seen),
            *facts.about_origin(run),
            facts.about_workers(seen),
            *facts.about_clocks(seen),
            *facts.about_task(seen),
            *facts.about_rate(seen, [run]),
            *facts.about_seats(seen, [run]),
        ]
        otherwise = "nothing holds it up: it starts as soon as a seat is free"
    hold = first_hold(found)
    answer = otherwise if hold is None else hold.text
    return Why(run.id, f"run of {run.task}", answer, linked(found, run.task, run.key, run), changes_at(found))


def _running(run: Run, seen: Evidence) -> list[Fact]:
    since = away(run.claimed_at or seen.now, seen.now)
    if is_stranded(run, seen.now):
        return [
            Fact("run", stranded_words(run, seen.fleet), True),
            Fact("run", f"{run.worker} claimed it {since} (fence {run.fence})"),
            facts.about_workers(seen),
            *facts.about_clocks(seen),
        ]
    found = [Fact("run", f"it runs on {run.worker} (fence {run.fence}), claimed {since}")]
    found += facts.about_blocked(seen, [run])
    if run.cancel_requested or run.pause_requested:
        command = "cancelled" if run.cancel_requested else "paused"
        note = f" ({run.note})" if run.note else ""
        found.append(Fact("run", f"it is to be {command}{note}, and its handler runs on {run.worker} until it stops"))
    return found


def _ended(run: Run, seen: Evidence) -> list[Fact]:
    return [
        *(Fact("attempt", _how_it_ended(attempt, seen.now)) for attempt in run.attempts[-5:]),
        Fact("run", ended_words(run, seen.now, "it", WHOLE)),
    ]


def _how_it_ended(attempt: Attempt, now: float) -> str:
    when = at(attempt.ended_at, now)
    if attempt.outcome == REPLACED:
        return f"a join replaced the arguments {when}"
    return f"{attempt.outcome} {when} on {attempt.worker}"


async def _stopped(store: Reads, run: Run, now: float) -> list[Fact]:
    """Return which step's failure has stopped the flow, if `run` was cancelled by that."""
    if run.reason is not Reason.STOPPED or run.member is None:
        return []
    failed = (await store.runs(RunQuery(group=run.member.group, state=[State.FAILED], limit=100))).runs
    culprit = next((other for other in failed if other.member and other.member.stops), None)
    if culprit is None or culprit.member is None:
        return []
    words = (
        f"step {culprit.member.step} failed {at(culprit.finished_at or now, now)}: {culprit.error or culprit.reason}"
    )
    text = f"{words}; it is one that stops {run.member.group}. {again(culprit)} goes on from there"
    return [Fact("stopped", text, link=to_run(culprit.id))]


async def _resembling(store: Reads, name: str) -> str:
    known = [spec.name for spec in (await store.rows(TaskSpec)).items]
    known += [schedule.id for schedule in (await store.rows(Schedule, RowQuery(limit=1000))).items]
    return did_you_mean(name, known, ": no run, task or schedule has that name")
