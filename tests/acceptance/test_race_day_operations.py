"""Row 3.9 of the fourth source document: a day is reset and repeated, and rota says why a task waits."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from examples.race_day.app import app
from examples.race_day.day import day
from examples.race_day.story import Story
from tests.acceptance.race_day_story import TODAY, clock
from tests.requirement import requirement

ROOT = Path(__file__).parents[2]


# -- 3.9 -----------------------------------------------------------------------------------------------------------


@requirement("3.9")
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
