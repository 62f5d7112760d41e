"""Rows 3.5, 3.7 and 3.d of the fourth source document: a run per race, at its time. See test_race_day.py."""

import asyncio
import json
from datetime import UTC, timedelta

import pytest

from examples.race_day.app import app
from examples.race_day.day import day
from examples.race_day.racing import Race, milliseconds
from examples.race_day.story import MORNING, Story
from rota import Reason, Rota, State
from rota.schedules.plans import normalize_instant
from rota.testing import Simulation, simulate
from tests.acceptance.race_day_story import TODAY, only, times
from tests.requirement import requirement

# -- 3.5 -----------------------------------------------------------------------------------------------------------


@requirement("3.5")
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


# -- 3.7 -----------------------------------------------------------------------------------------------------------


@requirement("3.7")
@pytest.mark.parametrize("unit", [1, 1000], ids=["seconds", "milliseconds"])
def test_3_7_timestamps_are_accepted_in_seconds_and_milliseconds(unit: int) -> None:
    """A service may change its mind about the unit; the chat comes at the same time."""

    async def changes(story: Story) -> None:
        start = round(story.at("13:30").timestamp()) * unit
        assert normalize_instant(start) == story.at("13:30").timestamp()
        story.world.races = {"R1C1": Race("R1C1", start)}

    assert times(Story(hours=12).play(changes), "autochat") == {"R1C1": "13:15"}


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
