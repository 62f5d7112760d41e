"""From a name to an answer."""

from difflib import get_close_matches

from rota.domain.decision import Reason
from rota.domain.run import Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.errors import UnknownTask
from rota.store import RowQuery, RunQuery, Store
from rota.why import facts
from rota.why.answer import Fact, Why, at, away
from rota.why.evidence import Evidence, gather
from rota.why.trail import again


async def why(store: Store, subject: str, key: str | None = None) -> Why:
    """What keeps a run, a task (or one key of it) or a schedule from running, or what it did last and when next."""
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
    found = [
        facts.about_workers(seen),
        *facts.about_task(seen),
        *facts.about_rate(seen, seen.unfinished),
        *facts.about_key(seen),
        *facts.about_queue(seen),
        *facts.about_schedules(seen),
        *facts.about_decisions(seen),
        *facts.about_last(seen),
    ]
    idle = not seen.unfinished and not any(fact.about in ("schedule", "decided") for fact in found)
    found.append(Fact("answer", "nothing was submitted" if idle else "nothing holds it up"))
    subject = seen.task if seen.key is None else f"{seen.task} {seen.key}"
    return Why(subject, "task", tuple(found))


async def _of_schedule(store: Store, schedule: Schedule) -> Why:
    seen = await gather(store, schedule.task, schedule.key)
    found = [
        *facts.about_schedule(schedule, seen),
        facts.about_workers(seen),
        *facts.about_task(seen),
        *facts.about_rate(seen, seen.unfinished),
        *facts.about_queue(seen),
        *facts.about_decisions(seen),
        *facts.about_last(seen),
        Fact("answer", "nothing holds it up"),
    ]
    return Why(schedule.id, "schedule", tuple(found))


async def _of_run(store: Store, run: Run) -> Why:
    seen = await gather(store, run.task, run.key, run)
    if run.state.final or run.state is State.RUNNING:
        found = [*_standing(run, seen), *await _stopped(store, run, seen.now), *facts.about_origin(run)]
    else:
        found = [
            *facts.about_waiting(run, seen),
            *facts.about_origin(run),
            facts.about_workers(seen),
            *facts.about_task(seen),
            *facts.about_rate(seen, [run]),
        ]
        found.append(Fact("answer", "nothing holds it up: it starts as soon as a seat is free"))
    return Why(run.id, f"run of {run.task}", tuple(found))


def _standing(run: Run, seen: Evidence) -> list[Fact]:
    if run.state is State.RUNNING:
        since = away(run.claimed_at or seen.now, seen.now)
        found = [Fact("run", f"it runs on {run.worker} (fence {run.fence}), claimed {since}")]
        if run.until is not None and run.until <= seen.now:
            found.append(
                Fact("run", f"its lease lapsed {away(run.until, seen.now)}: another worker takes it over", True)
            )
        return found
    why = f": {run.error}" if run.error else f": {run.reason}" if run.reason else ""
    note = f" ({run.note})" if run.note else ""
    became = "was cancelled" if run.state is State.CANCELLED else str(run.state)
    return [
        *(Fact("attempt", f"{a.outcome} {at(a.ended_at, seen.now)} on {a.worker}") for a in run.attempts[-5:]),
        Fact("run", f"it {became} {at(run.finished_at or seen.now, seen.now)}{why}{note}"),
    ]


async def _stopped(store: Store, run: Run, now: float) -> list[Fact]:
    """Of a step that was cancelled because its flow has stopped: whose failure that was."""
    if run.reason is not Reason.STOPPED or run.member is None:
        return []
    failed = (await store.runs(RunQuery(group=run.member.group, states=[State.FAILED], limit=100))).runs
    culprit = next((other for other in failed if other.member and other.member.stops), None)
    if culprit is None or culprit.member is None:
        return []
    words = (
        f"step {culprit.member.step} failed {at(culprit.finished_at or now, now)}: {culprit.error or culprit.reason}"
    )
    return [Fact("stopped", f"{words}; it is one that stops {run.member.group}. {again(culprit)} goes on from there")]


async def _resembling(store: Store, name: str) -> str:
    known = [spec.name for spec in (await store.rows(TaskSpec)).items]
    known += [schedule.id for schedule in (await store.rows(Schedule, RowQuery(limit=1000))).items]
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ": no run, task or schedule has that name"
