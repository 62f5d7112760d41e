"""The promises that every step of a walk must keep. They read runs and share no code with the ledger."""

from itertools import combinations, pairwise
from typing import Any

from rota.domain.joins import REPLACED
from rota.domain.run import Run
from rota.domain.settlement import Charge, Finish
from storekit.walk.acting import Event
from storekit.walk.books import Frozen
from storekit.walk.worlds import People, World


def check(world: World, before: Frozen, event: Event, answer: Any, after: Frozen, people: People) -> None:
    """Raise AssertionError if a promise is broken."""
    assert after.now >= before.now
    assert people.fired <= 1, "one tick of the schedule fired twice"
    if event.verb == "settle":
        check_verdicts(before, event, answer.items)
    if after.runs == before.runs and event.verb != "claim":
        return
    known = {run.id: run for run in before.runs}
    unended = [run.id for run in after.runs if not run.state.final]
    for run in after.runs:
        check_step(known.get(run.id), run, event, before.now, unended)
        check_counts(world, run, people)
    check_crowd(world, after)
    assert len({run.id for run in after.runs}) == len(after.runs)


def check_final(before: Frozen, after: Frozen) -> None:
    """Check that no field of an ended run changes."""
    runs = {run.id: run for run in after.runs}
    for run in before.runs:
        assert not run.state.final or runs[run.id] == run, f"{run.id} was final and changed"


def check_step(before: Run | None, run: Run, event: Event, now: float, unended: list[str]) -> None:
    if before is None:
        assert (run.fence, run.state) == (0, "queued"), "a new run is not queued"
        return
    started = run.fence - before.fence
    assert started in (0, 1), f"the fences of {run.id} have a gap"
    if started:
        assert event.verb == "claim", f"{run.id} got a fence from {event.verb}"
        assert before.state == "queued", f"{run.id} started while it was {before.state}"
        assert before.due_at <= now, f"{run.id} started before it was due"
        assert not any(need in unended for need in before.needs), f"{run.id} started before what it needs"
        assert before.expires_at is None or before.expires_at > now, f"{run.id} started too late"
    else:
        assert run.worker in (None, before.worker), f"{run.id} changed hands without a claim"
    if run.body != before.body:
        assert before.state in ("queued", "paused"), f"{run.id} got other arguments while it was {before.state}"
        past = (run.failures, run.losses, run.saved, run.progress, run.error)
        assert past == (0, 0, None, None, None), f"{run.id} got other arguments and kept the past of those before"
    assert (run.state == "running") == (run.worker is not None) == (run.until is not None)
    assert run.state.final == (run.finished_at is not None)


def check_counts(world: World, run: Run, people: People) -> None:
    """Check that each fence ended once, in order, and has its attempt; and that failures and losses are those of the
    present arguments."""
    applied = [settlement for settlement in people.applied if settlement.run == run.id]
    words = [attempt.outcome for attempt in run.attempts]
    assert (REPLACED, REPLACED) not in pairwise(words), f"{run.id} tells twice of one replacement"
    ours = words[::-1].index(REPLACED) if REPLACED in words else len(words)
    charges = [settlement.charge for settlement in applied[len(applied) - ours :]]
    assert run.losses == charges.count(Charge.LOSS), f"the losses of {run.id} are miscounted"
    failed = charges.count(Charge.FAILURE)
    inherited = run.unique_key is not None  # a waiting run takes the failures of the run that it supersedes
    assert run.failures == failed or (inherited and run.failures > failed), f"the failures of {run.id} are miscounted"
    recorded = [attempt.fence for attempt in run.attempts if attempt.outcome != REPLACED]
    assert recorded == [settlement.fence for settlement in applied], f"{run.id} does not tell of all its attempts"
    assert [settlement.fence for settlement in applied] == [*range(1, len(applied) + 1)], (
        f"a fence of {run.id} did not end once"
    )
    assert run.fence - len(applied) == (run.state == "running"), f"{run.id} has two fences at once"
    finished = sum(isinstance(settlement.action, Finish) for settlement in applied)
    assert finished <= 1, f"{run.id} was recorded finished twice"
    if world.once(run.id):
        assert sum(id == run.id for id, _ in people.called) <= 1, f"{run.id} was called twice"


def check_crowd(world: World, after: Frozen) -> None:
    """Check that no limit is exceeded and that no unique key has two runs."""
    running = [run for run in after.runs if run.state == "running"]
    limit = world.spec.limit
    if limit is not None and limit.total is not None:
        assert len(running) <= limit.total, "more runs than the limit allows"
    if limit is not None and limit.per_key is not None:
        keys = [run.key for run in running if run.key is not None]
        assert all(keys.count(key) <= limit.per_key for key in keys), "more runs of one key than the limit allows"
    for one, other in combinations(after.runs, 2):
        equal = one.unique_key is not None and one.unique_key == other.unique_key
        if equal and all(run.state in ("queued", "paused") for run in (one, other)):
            # join="wait": a run that was tried waits for its retry, and a run that was never tried waits for its end.
            tried, new = sorted((one, other), key=lambda run: run.fence == 0)
            in_turn = tried.fence > 0 and new.fence == 0 and tried.id in new.needs
            assert in_turn, "two equal runs wait"


def check_verdicts(before: Frozen, event: Event, verdicts: list[str]) -> None:
    """Check that only the worker with the lease settles a run, and a rescuer only after the lease has lapsed."""
    known = {run.id: run for run in before.runs}
    for settlement, verdict in zip(event.args[0], verdicts, strict=True):
        run = known[settlement.run]
        live = run.until is not None and run.until > before.now
        assert not (settlement.lost and live and verdict == "applied"), (
            f"{settlement.run} was rescued from a living worker"
        )
        holds = run.state == "running" and (run.fence, run.worker) == (settlement.fence, settlement.worker)
        assert holds or verdict != "applied", f"{settlement.worker} settled {settlement.run}, which it did not hold"
        assert not holds or settlement.lost or verdict == "applied", (
            f"the word of {settlement.worker} on {settlement.run} was refused"
        )


def ended(frozen: Frozen) -> bool:
    return all(run.state.final for run in frozen.runs)
