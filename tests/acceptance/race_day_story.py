"""What the tests of `examples/race_day` read out of a day."""

import json
from datetime import datetime

from examples.race_day.racing import PARIS
from examples.race_day.story import Story
from rota import Run, State

TODAY = "2026-11-15"


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
