"""The first line of `rota why` is the answer: one test for each thing it can be."""

import re

import pytest

from rota import Every, Limit, Period, Rota
from rota.app.core import core_of
from rota.domain.lifecycle import (
    Cancelled,
    Crashed,
    Discarded,
    Failed,
    Outcome,
    Skipped,
    Snoozed,
    Succeeded,
    Unbindable,
    settlement_of,
)
from rota.domain.run import Failure, State
from rota.errors import Refused
from rota.store import ClaimRequest, Command, Report, RunQuery
from rota.task import definition_of
from tests.surfaces.called import Called, waiting
from tests.surfaces.timetables import on_terminal
from tests.surfaces.why_scene import START, Scene

MISFIT = "the stored arguments do not fit boom(a: str, c: int): missing a required argument: 'c'"
FINAL = Discarded(Failure("ValueError", "bad 3"))


@pytest.fixture
async def scene() -> Scene:
    scene = Scene()
    await scene.publish()
    await scene.work()
    return scene


async def test_the_clock_of_a_scene_moves_only_when_it_is_told_to(scene: Scene) -> None:
    now = (await (await scene.store()).runs(RunQuery(ids=[]))).now
    assert now == START
    scene.backend.skew += 4
    assert (await (await scene.store()).runs(RunQuery(ids=[]))).now == START + 4


# -- a task with nothing to do -----------------------------------------------------------------------------------------


async def test_nothing_was_ever_submitted(scene: Scene) -> None:
    assert await scene.told("boom") == "nothing was submitted"


async def test_nothing_was_ever_submitted_and_nobody_would_do_it(scene: Scene) -> None:
    scene.backend.skew += 120
    told = await scene.app.why("boom")
    assert told.answer == "nothing was submitted; nothing waits, and no live worker knows the task"
    assert not told.held


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (FINAL, "failed 4 seconds ago (…): ValueError: bad 3"),
        (None, "succeeded 4 seconds ago (…)"),
        (Skipped("nothing new"), "succeeded 4 seconds ago (…): Skipped: nothing new"),
    ],
)
async def test_the_last_run_ended(scene: Scene, outcome: Outcome | None, words: str) -> None:
    run = await scene.boom.submit(3)
    await scene.end(outcome=outcome)
    scene.backend.skew += 4
    told = await scene.app.why("boom")
    assert without_clock(told.answer) == f"its last run {words}"
    assert not told.held
    assert without_clock((await scene.app.why(run.id)).answer) == f"it {words}"


async def test_the_last_run_is_the_one_that_ended_last(scene: Scene) -> None:
    slow = await scene.boom.submit(1)
    await scene.work(free=1)
    await scene.boom.submit(2)
    await scene.end(outcome=FINAL)
    scene.backend.skew += 1
    await slow.cancel("enough")
    store = await scene.store()
    await store.settle([settlement_of(await slow.refresh(), Cancelled())])
    assert without_clock(await scene.told("boom")) == "its last run was cancelled 0 seconds ago (…) (enough)"


async def test_a_submit_was_refused_after_the_last_run(scene: Scene) -> None:
    await scene.boom.submit(3)
    await scene.end()
    scene.backend.skew += 10
    await scene.boom.using(key="k", unique="done").submit(4)
    await scene.end()
    scene.backend.skew += 10
    with pytest.raises(Refused):
        await scene.boom.using(key="k", unique="done").submit(4)
    assert without_clock(await scene.told("boom")) == (
        "the last submit for 'k' was refused 0 seconds ago (…): it was done already (already_done)"
    )


async def test_a_long_error_is_quoted_in_part(scene: Scene) -> None:
    await scene.boom.submit(3)
    await scene.end(outcome=Discarded(Failure("ValueError", "bad\n" * 400)))
    told = await scene.app.why("boom")
    assert len(told.answer) < 300
    assert "\n" not in told.answer
    assert told.answer.endswith("bad…")


# -- a task at work ----------------------------------------------------------------------------------------------------


async def test_it_runs(scene: Scene) -> None:
    run = await scene.boom.submit(1)
    await scene.work()
    scene.backend.skew += 4
    await scene.work()
    assert await scene.told("boom") == "1 run is running; it began 4 seconds ago on ada"
    assert await scene.told(run.id) == "it runs on ada (fence 1), claimed 4 seconds ago"


async def test_it_runs_and_another_is_due_later(scene: Scene) -> None:
    await scene.boom.submit(1)
    await scene.boom.submit(2)
    await scene.work()
    later = await scene.boom.using(delay=3600).submit(3)
    assert without_clock(await scene.told("boom")) == (
        f"2 runs are running; the newest began 0 seconds ago on ada; run {later.id} is due in 60 minutes (…)"
    )


async def test_a_limit_that_nobody_waits_for_holds_nothing(scene: Scene) -> None:
    await scene.fetch.submit(1)
    await scene.work()
    told = await scene.app.why("fetch")
    assert not told.held
    assert told.answer.startswith("1 run is running")


async def test_a_run_that_is_to_stop(scene: Scene) -> None:
    run = await scene.boom.submit(1)
    await scene.work()
    await run.cancel("not needed")
    assert await scene.told(run.id) == "it is to be cancelled (not needed), and its handler runs on ada until it stops"


async def test_a_lease_that_lapsed(scene: Scene) -> None:
    run = await scene.boom.submit(1)
    await scene.work()
    scene.backend.skew += 40
    words = (
        "it is held by the dead worker ada (its lease lapsed 10 seconds ago): "
        "it starts again once a worker runs: `rota worker`"
    )
    assert await scene.told(run.id) == words
    told = await scene.app.why("boom")
    assert told.answer == f"run {run.id} waits: {words}"
    assert "- workers: no worker is alive: start one with `rota worker` (one that knows boom fell" in str(told)
    await (await scene.store()).claim(ClaimRequest("bob", 1, ["other"], 0, 30))
    assert await scene.told(run.id) == "its lease lapsed 10 seconds ago: another worker takes it over"


async def test_runs_of_a_dead_worker_beside_one_that_runs(scene: Scene) -> None:
    first, _ = await scene.boom.submit(1), await scene.boom.submit(2)
    await scene.work(free=1)
    scene.backend.skew += 1
    await scene.work(free=1)
    scene.backend.skew += 39
    assert (await scene.told("boom")).endswith("once a worker runs: `rota worker`; so does 1 other run")
    await (await scene.store()).claim(ClaimRequest("bob", 1, ["boom"], 1, 30))
    assert await scene.told("boom") == (
        f"run {first.id} waits: its lease lapsed 10 seconds ago: another worker takes it over; so does 1 other run"
    )
    await scene.boom.submit(3)
    await (await scene.store()).claim(ClaimRequest("bob", 2, ["boom"], 1, 30))
    assert await scene.told("boom") == "1 run is running; it began 0 seconds ago on bob"


@pytest.mark.parametrize(
    ("control", "fate"), [(Command.CANCEL, "is cancelled"), (Command.PAUSE, "is paused"), (None, "starts again")]
)
async def test_what_a_rescue_makes_of_a_run_that_was_lost(scene: Scene, control: Command | None, fate: str) -> None:
    run = await scene.boom.submit(1)
    await scene.work()
    if control is not None:
        await (await scene.store()).control(control, [run.id])
    scene.backend.skew += 40
    assert f"it {fate} once a worker runs" in await scene.told(run.id)


async def test_a_run_that_may_be_lost_once_ends_with_its_worker(scene: Scene) -> None:
    @scene.app.task(lost="fail")
    async def pay() -> None: ...

    run = await pay.submit()
    await scene.work()
    scene.backend.skew += 40
    assert "it ends as failed (lost) once a worker runs: `rota worker`" in await scene.told(run.id)


async def test_a_worker_that_is_stopping_is_told_of(scene: Scene) -> None:
    run = await scene.boom.submit(1)
    await scene.work(report=Report(lease=30.0))
    store = await scene.store()
    await store.claim(ClaimRequest("ada", 2, [], 0, 30))
    for _ in range(2):  # it renews for longer than a worker that claims is silent
        scene.backend.skew += 20
        await store.renew([(await run.refresh()).lease], 30.0)
    words = "ada is stopping and claims nothing more: start another worker with `rota worker`"
    told = await scene.app.why("boom")
    assert told.answer == "1 run is running; it began 40 seconds ago on ada"
    assert [fact.text for fact in told.facts if fact.about == "workers"] == [words]
    await scene.boom.submit(2)
    assert await scene.told("boom") == words
    scene.backend.skew += 40
    assert "dead worker ada" in await scene.told("boom")


async def test_a_step_or_a_plans_run_is_headed_by_what_became_of_it(scene: Scene) -> None:
    flow = scene.app.flow("day", once=Period.day(tz="UTC"))
    flow.step(scene.boom)
    await scene.publish()
    await flow.start("2026-11-15")
    await scene.end(outcome=FINAL)
    (run,) = [step.run.id for step in (await flow.status("2026-11-15")).steps.values() if step.run]
    told = await scene.app.why(run)
    assert "flow: it is step boom of day in 2026-11-15" in str(told)
    assert without_clock(told.answer) == "it failed 0 seconds ago (…): ValueError: bad 3"


# -- a task that waits -------------------------------------------------------------------------------------------------


async def test_it_starts_as_soon_as_a_seat_is_free(scene: Scene) -> None:
    run = await scene.boom.submit(1)
    assert await scene.told("boom") == f"nothing holds it up: run {run.id} starts as soon as a seat is free"
    assert await scene.told(run.id) == "nothing holds it up: it starts as soon as a seat is free"


async def test_every_seat_is_taken(scene: Scene) -> None:
    await scene.boom.submit(1)
    await scene.work(free=1)
    late = await scene.boom.submit(2)
    scene.backend.skew += 5
    await scene.work(free=0, report=Report(seats=1, leased=1))
    expected = "the only seat of the 1 live worker that knows boom is taken"
    assert await scene.told("boom") == expected
    assert await scene.told(late.id) == expected
    await scene.work(free=0, report=Report(seats=4, leased=1))
    assert "seat" not in str(await scene.app.why("boom")).replace("as soon as a seat", "")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Failed(Failure("ValueError", "bad 3")), "is due in 60 seconds (…) (try 2, after ValueError: bad 3)"),
        (Snoozed(60.0), "is due in 60 seconds (…) (the last try was snoozed)"),
        (Unbindable(Failure("TypeError", MISFIT)), f"was tried once and could not be called: {MISFIT}; next try in"),
    ],
)
async def test_a_run_that_was_tried_says_how_that_ended(scene: Scene, outcome: Outcome, words: str) -> None:
    run = await scene.boom.submit(3)
    await scene.end(outcome=outcome)
    for told in (await scene.told("boom"), await scene.told(run.id)):
        assert without_clock(told).startswith(f"run {run.id} {words}")


async def test_a_run_whose_arguments_do_not_fit_was_tried_twice(scene: Scene) -> None:
    run = await scene.boom.submit(3)
    for _ in range(2):
        await scene.end(outcome=Unbindable(Failure("TypeError", MISFIT)))
        scene.backend.skew += 6
    expected = f"run {run.id} was tried twice and could not be called: {MISFIT}; next try in 4 seconds (…)"
    told = await scene.app.why("boom")
    assert (without_clock(told.answer), told.held) == (expected, True)
    assert without_clock(await scene.told(run.id)) == expected
    scene.backend.skew += 10
    assert "; the next try was due 6 seconds ago" in await scene.told(run.id)
    await scene.end(outcome=Failed(Failure("ValueError", "bad 3")))
    assert "do not fit" not in await scene.told(run.id), "the last try did call it"


async def test_a_run_that_its_worker_was_lost_with(scene: Scene) -> None:
    run = await scene.boom.submit(3)
    await scene.end(outcome=Crashed(Failure("ProcessDied", "killed by SIGKILL")))
    told = str(await scene.app.why(run.id))
    assert "(again, after the worker ada was lost with it 1 time)" in without_clock(told)


# -- schedules ---------------------------------------------------------------------------------------------------------


async def test_a_schedule_that_has_not_fired_yet(scene: Scene) -> None:
    expected = "it has not run yet; schedule fetch is next in 60 minutes (…)"
    assert without_clock(await scene.told("fetch")) == expected


async def test_the_last_run_of_a_schedule_failed(scene: Scene) -> None:
    await scene.app.schedules.put("beat", Every(hours=1), scene.boom.bind(1))
    scene.backend.skew += 3600
    await scene.fire()
    await scene.end(outcome=FINAL)
    for subject in ("boom", "beat"):
        assert without_clock(await scene.told(subject)) == (
            "its last run failed 0 seconds ago (…): ValueError: bad 3; schedule beat is next in 60 minutes (…)"
        )


async def test_ticks_that_were_refused_because_a_run_still_runs(scene: Scene) -> None:
    await scene.app.schedules.put("beat", Every(seconds=10), scene.boom.bind(1))
    run = await scene.app.schedules.run_now("beat")
    await scene.work()
    for _ in range(5):
        scene.backend.skew += 10
        await scene.fire()
    words = (
        "its last 5 ticks made no run, the last one 0 seconds ago (…): an earlier run still ran (already_running); "
        f"run {run.id} began 50 seconds ago and still runs"
    )
    told = await scene.app.why("beat")
    assert (without_clock(told.answer), told.held) == (f"schedule beat: {words}", True)
    assert "nothing holds it up" not in str(told)


async def test_ticks_that_were_refused_by_a_run_that_has_ended_since(scene: Scene) -> None:
    await scene.app.schedules.put("beat", Every(seconds=10), scene.boom.bind(1))
    await scene.app.schedules.run_now("beat")
    await scene.work()
    scene.backend.skew += 10
    await scene.fire()
    store = await scene.store()
    (running,) = (await store.runs(RunQuery(state=[State.RUNNING]))).runs
    scene.backend.skew -= 1
    await store.settle([settlement_of(running, Succeeded())])
    scene.backend.skew += 1
    told = await scene.app.why("beat")
    assert not told.held
    assert without_clock(told.answer) == (
        "its last tick, 0 seconds ago (…), made no run: an earlier run still ran (already_running); "
        "schedule beat is next in 10 seconds (…)"
    )


async def test_a_schedule_without_a_tick_left_and_a_deadline(scene: Scene) -> None:
    app = Rota(scene.backend, name="ends", tz="UTC")

    @app.task(schedule=Every(hours=1), expect="04:00", limit=Limit(1))
    async def report() -> None: ...

    await (await scene.store()).declare([definition_of(report).spec])
    await core_of(app).declare_schedules()
    await (await scene.store()).claim(ClaimRequest("bob", 1, ["report"], 1, 30))
    assert (await scene.told("expect:report")).startswith(
        "it looks whether report was done; it was never late so far; "
    )


# -- the whole answer --------------------------------------------------------------------------------------------------


async def test_no_line_contradicts_the_head(scene: Scene) -> None:
    await (await scene.store()).put([waiting("019a0000-0000-7000-8000-aaaa520bec67", "typo_task")])
    told = str(await scene.app.why("typo_task"))
    assert told.startswith("task typo_task: workers are alive, but none knows typo_task")
    assert "nothing holds it up" not in told


def test_lines_are_wrapped_between_words_and_commands_stay_whole(rota: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    rota.put(waiting("019a0000-0000-7000-8000-aaaa520bec67"))
    rota("runs", "pause", "520bec67", "--note", "until the new disk is there, which may take until the end of the week")
    one_each = rota("why", "520bec67").splitlines()
    on_terminal(monkeypatch, 60)
    lines = rota("why", "520bec67").splitlines()
    assert "`rota runs resume 019a0000-0000-7000-8000-aaaa520bec67`" in "\n".join(lines)
    assert all(len(line) <= 60 or line.strip().startswith("`rota") for line in lines)
    assert " ".join(" ".join(lines).split()) == " ".join(one_each)


def without_clock(text: str) -> str:
    """Times of day as (…)."""
    return re.sub(r"\(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00:00\)", "(…)", text)
