"""Rows of the fourth source document: a day of dependent work, walked through `examples/race_day`. Numbers are those
of the rows. A `Story` is a day of that app in virtual time, in a world that the test plays."""

import asyncio
import json
import threading
from datetime import timedelta

import pytest

from examples.race_day.app import app
from examples.race_day.day import day
from examples.race_day.story import MORNING, Story, a_bad_day
from rota import Cron, InvalidOptions, Period, Reason, Refused, Rota, State
from rota.domain.lifecycle import Lost, Succeeded, settlement_of
from rota.domain.settlement import Verdict
from rota.store import ClaimRequest, MarkRow, RowQuery
from rota.stores.memory import MemoryBackend
from rota.testing import Simulation, simulate
from tests.acceptance.race_day_story import TODAY, clock, only, times
from tests.requirement import requirement


@pytest.fixture(scope="module")
def bad_day() -> Story:
    """Everything that can go wrong, as `make example` plays it."""
    return Story().play(a_bad_day)


# -- 3.1 -----------------------------------------------------------------------------------------------------------

DEPENDENCIES = {
    "clear_log": [],
    "today": ["clear_log"],
    "pastraces": ["today"],
    "yesterday": ["pastraces"],
    "predictions": ["yesterday"],
    "history": ["predictions"],
    "program": ["today", "history"],
    "participants": ["program"],
    "careers": ["participants"],
    "favorability": ["careers"],
    "plan_race": ["careers"],
    "prepare_tomorrow": ["plan_race"],
}


@requirement("3.1")
def test_3_1_a_chain_of_twelve_daily_tasks_some_with_several_parents_some_in_parallel() -> None:
    """Twelve steps a day; each starts the instant the last of its parents has succeeded, and those that share a
    parent run beside each other."""
    assert {name: list(step.spec.after) for name, step in day.steps.items()} == DEPENDENCIES
    story = Story(hours=3).play()
    began, ended = {}, {}
    for name in DEPENDENCIES:
        (attempt,) = only(story, name).attempts
        began[name], ended[name] = attempt.claimed_at, attempt.ended_at
    for name, parents in DEPENDENCIES.items():
        last = max((ended[parent] for parent in parents), default=story.at("04:00").timestamp())
        assert began[name] == pytest.approx(last, abs=0.01), name
    assert began["favorability"] == began["plan_race"]
    assert ended["prepare_tomorrow"] < ended["favorability"], "nobody waits for the slow one beside it"


@requirement("3.1")
def test_3_1_a_ring_a_stranger_or_a_namesake_is_refused_when_it_is_defined() -> None:
    """A chain that could never end is no chain: it is refused in code, not found at night."""
    other = Rota("memory://")
    a, b = (other.task(name=name)(lambda: None) for name in "ab")
    flow = other.flow("f", once=Period.day())
    flow.step(a)
    with pytest.raises(InvalidOptions, match="waits for itself"):
        flow.step(b, after=b)
    with pytest.raises(InvalidOptions, match="no step before it"):
        flow.step(b, after="c")
    with pytest.raises(InvalidOptions, match="two steps a"):
        flow.step(a)


# -- 3.2 -----------------------------------------------------------------------------------------------------------


@requirement("3.2")
def test_3_2_rechecked_every_seven_minutes_done_is_skipped_unmet_waits_else_it_runs(bad_day: Story) -> None:
    """From 4 to 23 h, every seven minutes: what is done is passed over, what waits for others goes on waiting, what
    has failed is done again. No step waits for the recheck."""
    checks = bad_day.simulation.of("race_day")
    assert len(checks) == 20 * 9
    answers = {clock(run.origin.nominal): json.loads(run.result or b"{}") for run in checks}
    assert set(answers["04:00"].values()) == {"accepted"}
    assert [answers["04:07"][step] for step in ("today", "predictions", "history", "plan_race")] == [
        "already_done",
        "accepted",
        "joined",
        "joined",
    ]
    assert set(answers["12:00"].values()) == {"already_done"}
    assert [clock(run.created_at) for run in bad_day.simulation.of("predictions")] == [
        "04:00", "04:07", "04:14", "04:21", "04:28", "04:35", "04:42",
    ]  # fmt: skip
    assert clock(only(bad_day, "prepare_tomorrow").finished_at) == "04:42", "the rest follows at once"
    calls = {step: len(bad_day.simulation.starts(step)) for step in DEPENDENCIES}
    assert calls == dict.fromkeys(DEPENDENCIES, 1) | {"predictions": 7, "careers": 2}, "careers lost a worker"


# -- 3.3 -----------------------------------------------------------------------------------------------------------


@requirement("3.3")
def test_3_3_once_a_day_with_the_reasons_already_running_and_already_completed() -> None:
    """A success is remembered per task and day. Asking again says why not, and another day is another day."""
    small, days = Rota("memory://", tz="Europe/Paris"), list[str]()

    @small.task(once=Period.day())
    async def today() -> None:
        days.append("today")
        await asyncio.sleep(10)

    async def asks(simulation: Simulation) -> None:
        await today.submit()
        await asyncio.sleep(5)
        with pytest.raises(Refused) as running:
            await today.submit()
        await asyncio.sleep(6)
        with pytest.raises(Refused) as done:
            await today.submit()
        assert [refused.value.decision.reason for refused in (running, done)] == [
            Reason.ALREADY_RUNNING,
            Reason.ALREADY_DONE,
        ]
        await asyncio.sleep(86_400)
        await today.submit()

    simulate(small, MORNING, MORNING + timedelta(days=2), scenario=asks)
    assert len(days) == 2


@requirement("3.3")
def test_3_3_a_failed_one_leaves_no_mark_and_a_dead_workers_lock_lapses(bad_day: Story) -> None:
    """Only a success counts as done, and a lock ends with its worker: after half a minute another one goes on."""
    assert [str(run.state) for run in bad_day.simulation.of("predictions")] == ["failed"] * 6 + ["succeeded"]
    lost, again = only(bad_day, "careers").attempts
    assert (lost.outcome, again.outcome) == ("lost", "succeeded")
    assert again.claimed_at - lost.claimed_at == pytest.approx(30, abs=6)


@requirement("3.3")
def test_3_3_the_marks_of_a_day_are_its_steps() -> None:
    """Marks can be read: one per step and day, by the name that is also its key."""

    async def looks(story: Story) -> None:
        await story.until("05:00")
        store = await app.client().store()
        for step in DEPENDENCIES:
            (row,) = (await store.rows(MarkRow, RowQuery(task=step))).items
            assert row.key == f"race_day/{step}@{TODAY}"
            assert row.mark is not None
            assert row.mark.succeeded_at is not None
        assert {answer.reason for answer in (await day.start()).values()} == {Reason.ALREADY_DONE}

    Story(hours=3).play(looks)


# -- 3.4 -----------------------------------------------------------------------------------------------------------


@requirement("3.4")
def test_3_4_recurring_tasks_opt_out_of_the_once_a_day_rule(bad_day: Story) -> None:
    """Odds every quarter of an hour from 7 to 22, the ground from 10 to 20: each tick is a run."""
    assert len(bad_day.simulation.starts("odds")) == 16 * 4
    assert len(bad_day.simulation.starts("ground_condition")) == 11 * 4


# -- 3.6 -----------------------------------------------------------------------------------------------------------


@requirement("3.6")
def test_3_6_success_skipped_failed_partial_with_errors_and_warnings(bad_day: Story) -> None:
    """How it went is recorded on the attempt: as what was returned, or as TaskError(status, message)."""
    succeeded = only(bad_day, "careers")
    skipped = only(bad_day, "yesterday")
    failed = bad_day.simulation.of("predictions")[0]
    (partial,) = [run for run in bad_day.simulation.of("ground_condition") if run.reason is Reason.PARTIAL]
    assert [run.attempts[-1].outcome for run in (succeeded, skipped, failed, partial)] == [
        "succeeded",
        "skipped",
        "failed",
        "partial",
    ]
    assert len(json.loads(succeeded.result or b"")) == 61, "five races of eleven horses, one of six"
    assert succeeded.attempts[-1].warnings == ("5 horses have never run",)
    assert (skipped.state, partial.state) == (State.SUCCEEDED, State.FAILED)
    assert failed.error is not None
    assert failed.error.message == "the model is asleep"
    assert partial.error is not None
    assert partial.error.message == "1 of 2 courses; no word from Auteuil"


# -- 3.8 -----------------------------------------------------------------------------------------------------------


@requirement("3.8")
def test_3_8_sync_tasks_use_async_services(bad_day: Story) -> None:
    """The chat's client is async, the task that posts is a plain function."""
    assert not asyncio.iscoroutinefunction(app.tasks["autochat"].fn)
    assert [post.split()[0] for post in bad_day.world.chat.posts] == ["R1C1", "R2C1", "R1C2", "R1C3"]


@requirement("3.8")
async def test_3_8_through_a_background_loop_that_blocks_nobody() -> None:
    """Outside of simulations the task has a thread, and the service a loop that is not the worker's."""
    small = Rota("memory://")
    worker_loop = asyncio.get_running_loop()

    async def service() -> bool:
        await asyncio.sleep(0)
        return asyncio.get_running_loop() is not worker_loop

    @small.task
    def post() -> bool:
        assert threading.current_thread() is not threading.main_thread()
        return small.portal.call(service)

    async with small:
        assert await (await post.submit()).result(timeout=10)


# -- beyond --------------------------------------------------------------------------------------------------------


@requirement("3.a")
def test_beyond_one_name_is_the_source_of_key_and_mark() -> None:
    """There, a chain's id that was spelled otherwise than its success key ran a planner every seven minutes. Here a
    step may be called as it likes: key, mark and need are made from one name, and it runs once."""
    small = Rota("memory://", tz="Europe/Paris")

    @small.task
    async def plan_watch_for_results_init() -> None: ...

    flow = small.flow("f", once=Period.day(), recheck=Cron("*/7 4-23 * * *"))
    flow.step(plan_watch_for_results_init, name="plan_watch_results_init")
    simulation = simulate(small, MORNING, MORNING + timedelta(hours=20))
    assert len(simulation.of("f")) > 100
    (run,) = simulation.of(plan_watch_for_results_init)
    assert run.key == run.unique_key == f"f/plan_watch_results_init@{TODAY}"


@requirement("3.b")
async def test_beyond_a_lock_is_released_only_by_its_holder() -> None:
    """There, `finally: delete(lock)` freed whoever had it by then. Here a worker that slept through its lease and
    woke up later can neither end the step nor release those behind it."""
    backend = MemoryBackend()
    with app.bound_to(backend):
        await day.start(TODAY)
        store = await app.client().store()
        (sleeper,) = (await store.claim(ClaimRequest("sleeper", 1, ["clear_log"], 1, 30))).runs
        backend.skew += 31
        (lapsed,) = (await store.claim(ClaimRequest("other", 1, [], 1, 30))).lapsed
        await store.settle([settlement_of(lapsed, Lost())])
        backend.skew += 60
        (taken,) = (await store.claim(ClaimRequest("other", 2, ["clear_log"], 1, 30))).runs
        assert (await store.settle([settlement_of(sleeper, Succeeded())])).items == [Verdict.STALE]
        assert not (await store.claim(ClaimRequest("other", 3, ["today"], 1, 30))).runs
        assert (await store.settle([settlement_of(taken, Succeeded())])).items == [Verdict.APPLIED]
        assert len((await store.claim(ClaimRequest("other", 4, ["today"], 1, 30))).runs) == 1
        await app.client().close()


@requirement("3.c")
def test_beyond_a_failed_parent_does_not_block_silently(bad_day: Story) -> None:
    """There, everything behind a failed task just never came. Here each step says what blocks it and since when, a
    hook hears of the failure, and a deadline of the step that is late because of it."""
    seen = bad_day.seen["04:36"]
    assert list(seen.blocked) == list(DEPENDENCIES)[5:]
    assert {step.blocked_by for step in seen.blocked.values()} == {("predictions",)}
    assert {clock(step.since) for step in seen.blocked.values()} == {"04:35"}
    assert "04:00  failed: predictions, TaskError: the model is asleep" in bad_day.journal
    assert [line[:23] for line in bad_day.journal if "late" in line] == ["04:30  late: plan_race,"]
    assert bad_day.seen["23:59"].done


@requirement("3.d")
def test_beyond_a_race_that_moves_is_followed(bad_day: Story) -> None:
    """There, a planned job stayed at the first time it was given. Here R1C3 moves twice and is talked about and
    watched once, at its last time; R2C2 is cancelled, and nothing comes of it."""
    assert times(bad_day, "autochat")["R1C3"] == "15:05"
    assert times(bad_day, "watch_results")["R1C3"] == "15:30"
    for task in ("autochat", "watch_results"):
        assert "R2C2" not in times(bad_day, task)
        (gone,) = [run for run in bad_day.simulation.of(task) if run.state is State.CANCELLED]
        assert json.loads(gone.args)["race"] == "R2C2"
