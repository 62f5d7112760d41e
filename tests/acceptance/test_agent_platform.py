"""The example of the second source document in real processes: an API without a scheduler, schedulers beside it, and
the way back. The story is played once; each test looks at a part of it."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from examples.agent_platform.platform import Platform
from tests.requirement import requirement

REPORT = {"agent": "ada", "when": "every 1s", "message": "Write the report"}


class Story(Struct):
    """What was seen, in the order of the story."""

    after_put: list[str] = []
    """The messages of the first ticks."""
    after_change: list[str] = []
    after_restart: int = 0
    """Ticks after all schedulers were killed and one was started."""
    embedded: int = 0
    """Ticks while only the API had schedulers inside."""
    scheduler_status: dict[str, Any] = {}
    metrics: str = ""
    api_status: dict[str, Any] = {}
    executions: list[dict[str, Any]] = []
    calls: dict[str, int] = {}
    """How often an agent was called for each run."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    seen = Story()
    folder: Path = tmp_path_factory.mktemp("platform")
    with Platform(f"sqlite:///{folder}/rota.db") as platform:
        agents = platform.agents
        schedulers = [platform.scheduler() for _ in range(2)]
        api = platform.api(workers=2).ready()
        api.ask("PUT", "/schedules/report", REPORT)
        agents.more(2)
        seen.after_put = [asked.message for asked in agents.asked]

        api.ask("PUT", "/schedules/other", {**REPORT, "agent": "bob", "message": "Read the mail"})
        agents.until(lambda asked: any(each.agent == "bob" for each in asked))
        api.ask("DELETE", "/schedules/other")
        seen.after_change = [asked.message for asked in agents.asked if asked.agent == "bob"]

        for scheduler in schedulers:
            scheduler.kill()
        before = len(agents.asked)
        dedicated = platform.scheduler().ready()
        agents.more(2)
        seen.after_restart = len(agents.asked) - before
        seen.scheduler_status = dedicated.ask("GET", "/status")
        seen.metrics = dedicated.ask("GET", "/metrics")

        embedded = platform.api(workers=2, embedded=True).ready()
        dedicated.stop()
        before = len(agents.asked)
        agents.more(2)
        seen.embedded = len(agents.asked) - before
        platform.scheduler().ready()
        embedded.stop()
        agents.more(2)
        agents.until(lambda asked: len({each.key for each in asked if each.agent == "ada"}) > 12)
        seen.api_status = api.ask("GET", "/status")
        seen.executions = api.ask("GET", "/schedules/report/executions")
        while seen.executions[-1]["state"] != "succeeded":  # under way
            del seen.executions[-1]
        seen.calls = Counter(asked.key for asked in agents.asked if asked.agent == "ada")
    return seen


@requirement("1.1")
@requirement("1.10")
def test_duplicate_execution_prevented(story: Story) -> None:
    """One run for each tick, from up to four schedulers. A run whose worker was killed may call its agent twice."""
    runs = [tick["run"] for tick in story.executions]
    assert len(set(runs)) == len(runs) >= 10
    assert {tick["reason"] for tick in story.executions} == {"accepted"}
    assert sum(count - 1 for count in story.calls.values()) <= 2, "two schedulers were killed"


@requirement("1.2")
@requirement("1.10")
def test_scheduler_receives_events(story: Story) -> None:
    """A schedule that the API puts fires at the next tick, though another process fires it."""
    assert set(story.after_put) == {"Write the report"}
    assert set(story.after_change) == {"Read the mail"}


@requirement("1.2")
@requirement("1.10")
def test_scheduler_survives_restart(story: Story) -> None:
    assert story.after_restart >= 2


@requirement("1.12")
def test_the_scheduler_moves_into_the_api_and_back_and_no_tick_is_missed(story: Story) -> None:
    """Ticks of a second, over the deaths and both moves: each has its run."""
    seconds = [int(tick["at"][17:19]) for tick in story.executions]
    assert all((after - before) % 60 == 1 for before, after in pairwise(seconds)), seconds
    assert story.embedded >= 2
    assert {tick["state"] for tick in story.executions} == {"succeeded"}


@requirement("1.3")
@requirement("1.6")
def test_the_api_has_no_scheduler_and_the_service_says_how_it_is(story: Story) -> None:
    assert story.api_status == {"scheduler": False, "jobs": 1}
    assert story.scheduler_status["running"] is True
    assert 'rota_schedules{state="active"} 1.0' in story.metrics


@requirement("1.9")
def test_an_agent_is_called_over_its_http_api_and_knows_the_run(story: Story) -> None:
    assert {tick["run"] for tick in story.executions} <= story.calls.keys() | {None}
