"""Rows of the fourth source document: a day of dependent work, walked through `examples/race_day`. Numbers are those
of the rows. A `Story` is a day of that app in virtual time, in a world that the test plays."""

import asyncio
import json
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from examples.race_day.app import app
from examples.race_day.day import day
from examples.race_day.racing import PARIS, Race, milliseconds
from examples.race_day.story import MORNING, Story, a_bad_day
from rota import Cron, InvalidOptions, Period, Reason, Refused, Rota, Run, State
from rota.domain.lifecycle import Lost, Succeeded, settlement_of
from rota.domain.settlement import Verdict
from rota.schedules.plans import normalize_instant
from rota.store import ClaimRequest, MarkRow, RowQuery
from rota.stores.memory import MemoryBackend
from rota.testing import Simulation, simulate
from tests.requirement import requirement

TODAY = "2026-11-15"
ROOT = Path(__file__).parents[2]


def clock(instant: float | None) -> str:
    assert instant is not None
    return f"{datetime.fromtimestamp(instant, PARIS):%H:%M}"


def only(story: Story, task: str) -> Run:
    """The one run of a task in that day."""
    (run,) = story.simulation.of(task)
    return run


def times(story: Story, task: str) -> dict[str, str]:
    """When the run of each race was done."""
    done = [run for run in story.simulation.of(task) if run.state is State.SUCCEEDED]
    found = {json.loads(run.args)["race"]: clock(run.claimed_at or run.attempts[-1].claimed_at) for run in done}
    assert len(found) == len(done), "no race twice"
    return found


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


@requirement("3.1", "A flow has steps with several parents, and steps that share a parent run beside each other.")
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


@requirement("3.2", "A recheck passes over what is done, leaves what waits, and runs again what failed.")
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


@requirement("3.3", "A task is done once in a period, and a refusal says whether it is running or already done.")
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


@requirement("3.4", "A task without `once` runs at every tick.")
def test_3_4_recurring_tasks_opt_out_of_the_once_a_day_rule(bad_day: Story) -> None:
    """Odds every quarter of an hour from 7 to 22, the ground from 10 to 20: each tick is a run."""
    assert len(bad_day.simulation.starts("odds")) == 16 * 4
    assert len(bad_day.simulation.starts("ground_condition")) == 11 * 4


# -- 3.5 -----------------------------------------------------------------------------------------------------------


@requirement(
    "3.5",
    "A plan makes one run per item around the time of the item, skips the past, and is done only as a whole.",
)
def test_3_5_a_planner_makes_one_run_per_race_around_its_start() -> None:
    """Results ten minutes after each race; chats a quarter of an hour before those with enough starters."""
    story = Story().play()
    assert times(story, "watch_results") == {
        "R1C1": "13:40", "R2C1": "13:57", "R1C2": "14:10", "R2C2": "14:25", "R1C3": "14:40", "R1C4": "15:10",
    }  # fmt: skip
    assert times(story, "autochat") == {
        "R1C1": "13:15", "R2C1": "13:32", "R1C2": "13:45", "R2C2": "14:00", "R1C3": "14:15",
    }  # fmt: skip
    assert {run.key for run in story.simulation.of("autochat")} == {
        f"autochat/{race}@{TODAY}" for race in times(story, "autochat")
    }, "its key is made of plan, race and day"


@requirement("3.5")
def test_3_5_the_past_is_skipped() -> None:
    """A day that begins late plans what is still to come, and says what is over."""
    story = Story()
    story.world.model_asleep = True

    async def late(story: Story) -> None:
        await app.schedules.pause("follow_program")
        await story.until("14:03")
        story.world.model_asleep = False

    story.play(late)
    assert json.loads(only(story, "plan_race").result or b"") == (
        "chats: 2 planned, 3 past (3 missed); results: 4 planned, 2 past (2 missed)"
    ), "planned at 14:07: what was to start at 14:00 is still within its grace, what was to at 13:57 is not"
    assert times(story, "autochat") == {"R2C2": "14:07", "R1C3": "14:15"}
    assert list(times(story, "watch_results")) == ["R1C2", "R2C2", "R1C3", "R1C4"]


@requirement("3.5")
@pytest.mark.parametrize(("back", "ran"), [("13:20", {"R1C1": "13:20"}), ("13:26", {})])
def test_3_5_a_run_that_cannot_start_has_ten_minutes_of_grace(back: str, ran: dict[str, str]) -> None:
    """Nobody is there at 13:15: within ten minutes the chat still comes, later never."""

    async def nobody(story: Story) -> None:
        await story.until("13:10")
        story.simulation.crash(restart=(story.at(back) - story.at("13:10")).total_seconds())

    story = Story(hours=10.45).play(nobody, workers=1)  # until 13:27
    assert times(story, "autochat") == ran
    if not ran:
        (run,) = [run for run in story.simulation.of("autochat") if run.due_at == story.at("13:15").timestamp()]
        assert (run.state, run.reason) == (State.CANCELLED, Reason.EXPIRED)


@requirement("3.5")
def test_3_5_the_planner_is_done_only_when_all_are_planned() -> None:
    """One race that cannot be planned, and none is; the step is not done, and the recheck plans all of them."""

    async def breaks(story: Story) -> None:
        await app.schedules.pause("follow_program")
        story.world.races["R2C2"] = Race("R2C2", start=-1)
        await story.until("04:06")
        assert (await day.status()).steps["plan_race"].state == "failed"
        assert not story.simulation.of("autochat")
        assert not story.simulation.of("watch_results")
        story.world.move("R2C2", story.at("14:15"))

    story = Story().play(breaks)
    assert [str(run.state) for run in story.simulation.of("plan_race")] == ["failed", "succeeded"]
    assert len(times(story, "watch_results")) == 6


# -- 3.6 -----------------------------------------------------------------------------------------------------------


@requirement("3.6", "A run is recorded as succeeded, skipped, failed or partial, with its errors and warnings.")
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


# -- 3.7 -----------------------------------------------------------------------------------------------------------


@requirement("3.7", "Timestamps in seconds and in milliseconds mean the same instant.")
@pytest.mark.parametrize("unit", [1, 1000], ids=["seconds", "milliseconds"])
def test_3_7_timestamps_are_accepted_in_seconds_and_milliseconds(unit: int) -> None:
    """A service may change its mind about the unit; the chat comes at the same time."""

    async def changes(story: Story) -> None:
        start = round(story.at("13:30").timestamp()) * unit
        assert normalize_instant(start) == story.at("13:30").timestamp()
        story.world.races = {"R1C1": Race("R1C1", start)}

    assert times(Story(hours=12).play(changes), "autochat") == {"R1C1": "13:15"}


# -- 3.8 -----------------------------------------------------------------------------------------------------------


@requirement("3.8", "A synchronous task calls async services without blocking the worker.")
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


# -- 3.9 -----------------------------------------------------------------------------------------------------------


@requirement("3.9", "A day is reset, a task is run again, and rota says why a task does not run.")
def test_3_9_a_day_is_reset_and_done_again() -> None:
    """Forget that a day is done, or a step and what follows from it: the next recheck does it again."""

    async def resets(story: Story) -> None:
        await story.until("05:01")
        assert await day.reset(TODAY, "careers", downstream=True) == [
            "careers",
            "favorability",
            "plan_race",
            "prepare_tomorrow",
        ]
        await story.until("06:01")
        assert len(await day.reset(TODAY)) == 12

    story = Story(hours=4).play(resets)
    assert [clock(run.created_at) for run in story.simulation.of("careers")] == ["04:00", "05:07", "06:07"]
    assert [clock(run.created_at) for run in story.simulation.of("today")] == ["04:00", "06:07"]
    assert (len(story.simulation.of("plan_race")), len(story.simulation.of("autochat"))) == (3, 5), "planned once each"


@requirement("3.9")
def test_3_9_a_task_is_run_again() -> None:
    """A failed run is retried by its id, a step by its name; what was waiting for it goes on."""

    async def again(story: Story) -> None:
        story.world.model_asleep = True
        await story.until("04:01")
        story.world.model_asleep = False
        failed = (await day.status()).steps["predictions"].run
        assert failed is not None
        await app.handle(failed.id).retry()
        await asyncio.sleep(30)
        assert (await day.status()).done
        await day.rerun("program", downstream=False)

    story = Story(hours=1.1).play(again)
    assert [clock(run.created_at) for run in story.simulation.of("predictions")] == ["04:00", "04:01"]
    assert (len(story.simulation.of("program")), len(story.simulation.of("participants"))) == (2, 1)


@requirement("3.9")
def test_3_9_nobody_has_to_clear_a_stuck_lock() -> None:
    """The worker dies in the middle of a step: its lease lapses, and the day goes on without a hand or a recheck."""

    async def dies(story: Story) -> None:
        await app.schedules.pause("race_day")
        await day.start()
        await asyncio.sleep(1.5)
        story.simulation.crash()
        await story.until("03:01")
        assert (await day.status()).done

    story = Story(hours=1).play(dies)
    assert sum(run.losses for run in story.simulation.runs) == 1


@requirement("3.9")
def test_3_9_one_sees_why_a_task_does_not_run() -> None:
    """Of a step: what blocks it. Of its run: what it waits for. Of a task: all that was looked at."""

    async def asks(story: Story) -> None:
        story.world.model_asleep = True
        await story.until("04:01")
        step = (await day.status()).steps["careers"]
        assert (step.state, step.blocked_by) == ("blocked", ("predictions",))
        assert step.run is not None
        waits = await app.why(step.run.id)
        assert waits.held
        assert f"race_day/participants@{TODAY}" in str(waits)
        failed = await app.why("predictions")
        assert "the model is asleep" in str(failed)

    Story(hours=2).play(asks)


@requirement("3.9")
def test_3_9_the_same_with_commands(tmp_path: Path) -> None:
    """`rota why`, `rota runs retry` and `rota reset` do it from a terminal, with nothing but the store and the app."""

    def rota(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "rota", *words, "-A", "examples.race_day.day", "--url", url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    url = f"sqlite:///{tmp_path / 'rota.db'}"
    rota("flows", "start", "race_day", "--period", TODAY)
    assert f"waits for race_day/clear_log@{TODAY}" in rota("flows", "why", "race_day", "today", "--period", TODAY)
    (run,) = json.loads(rota("runs", "ls", "--task", "clear_log", "--json"))
    rota("runs", "cancel", run["id"])
    assert f"blocked by race_day/clear_log@{TODAY}" in rota("why", "prepare_tomorrow")
    rota("runs", "retry", run["id"])
    assert "blocked" not in rota("why", "prepare_tomorrow")
    rota("marks", "set", "clear_log", f"race_day/clear_log@{TODAY}")
    assert f"clear_log race_day/clear_log@{TODAY} is reset" in rota("reset", "race_day", "--period", TODAY)


# -- beyond --------------------------------------------------------------------------------------------------------


@requirement("3.a", "The key, the mark and the need of a step come from one name.")
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


@requirement("3.b", "A lease is released only by its holder.")
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


@requirement("3.c", "A failed parent says which steps it blocks, and a late step is reported.")
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


@requirement("3.d", "A planned run follows an item that moves, disappears or comes back.")
def test_beyond_a_race_that_moves_is_followed(bad_day: Story) -> None:
    """There, a planned job stayed at the first time it was given. Here R1C3 moves twice and is talked about and
    watched once, at its last time; R2C2 is cancelled, and nothing comes of it."""
    assert times(bad_day, "autochat")["R1C3"] == "15:05"
    assert times(bad_day, "watch_results")["R1C3"] == "15:30"
    for task in ("autochat", "watch_results"):
        assert "R2C2" not in times(bad_day, task)
        (gone,) = [run for run in bad_day.simulation.of(task) if run.state is State.CANCELLED]
        assert json.loads(gone.args)["race"] == "R2C2"


@requirement("3.d")
def test_beyond_a_race_that_moves_and_comes_back_and_goes_away_is_followed_by_hand_too() -> None:
    """The same through `app.plan` alone, and what was cancelled may come back."""
    small, seen = Rota("memory://"), list[str]()

    @small.task
    async def watch(race: str) -> None:
        seen.append(race)

    async def plan(*races: Race) -> str:
        report = await small.plan(
            "watch",
            races,
            call=lambda race: watch.bind(race.id),
            at=lambda race: race.start,
            key=lambda race: race.id,
            period=TODAY,
        )
        return str(report)

    async def moves(simulation: Simulation) -> None:
        first, second, third = (milliseconds(MORNING.astimezone(UTC) + timedelta(hours=hour)) for hour in (1, 2, 3))
        assert await plan(Race("R1", first)) == "1 planned"
        assert await plan(Race("R1", second)) == "1 moved"
        assert await plan(Race("R1", second)) == "1 as they were"
        assert await plan() == "1 cancelled"
        assert await plan(Race("R1", third)) == "1 planned"
        await asyncio.sleep(4 * 3600)
        assert await plan(Race("R1", third)) == "1 past"

    simulation = simulate(small, MORNING, MORNING + timedelta(hours=5), scenario=moves)
    assert (seen, [f"{at:%H:%M}" for at in simulation.starts(watch)]) == (["R1"], ["06:00"])
