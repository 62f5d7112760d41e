"""What a step is called with, whether it is called, and what is wrong with its definition."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rota import (
    Cron,
    Inputs,
    InvalidArguments,
    InvalidOptions,
    Period,
    Reason,
    Retry,
    Rota,
    Snooze,
    State,
    TaskError,
)
from rota.domain.flow import StepSpec, as_step
from rota.domain.lifecycle import UNBINDABLE_RELEASES
from rota.task import call_of
from rota.testing import simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 11, 15, 3, 0, tzinfo=ZoneInfo("Europe/Paris"))
DAY = "2026-11-15"


def played(app: Rota, hours: float, scenario: Callable[[Simulation], Awaitable[object]] | None = None) -> Simulation:
    return simulate(app, START, START + timedelta(hours=hours), scenario=scenario)


def starts(app: Rota) -> Simulation:
    """The app's only flow, started once."""
    (flow,) = app.flows.values()

    async def start(simulation: Simulation) -> None:
        await flow.start()

    return played(app, 1, start)


def test_a_step_takes_its_parents_results_by_name() -> None:
    app, got = Rota("memory://"), list[Any]()

    @app.task
    async def races() -> list[str]:
        return ["R1", "R2"]

    @app.task
    async def horses(races: list[str], most: int = 5) -> dict[str, int]:
        return dict.fromkeys(races, most)

    @app.task
    async def report(races: list[str], horses: dict[str, int], title: str) -> None:
        got.append((title, races, horses))

    day = app.flow("day", once=Period.day())
    day.step(races)
    day.step(horses, after=races, args={"most": 8})
    day.step(report, after=[races, horses], args={"title": "today"})
    starts(app)
    assert got == [("today", ["R1", "R2"], {"R1": 8, "R2": 8})]


def test_a_result_stands_while_its_step_is_done_again() -> None:
    app, got = Rota("memory://"), list[Any]()

    @app.task
    async def slow() -> int:
        await asyncio.sleep(100)
        return 7

    @app.task
    async def takes(slow: int | None) -> None:
        got.append(slow)
        if len(got) == 1:
            raise Snooze(60)

    day = app.flow("day", once=Period.day())
    day.step(slow)
    day.step(takes, after=slow)

    async def reruns(simulation: Simulation) -> None:
        await day.start()
        await asyncio.sleep(110)
        await day.rerun("slow", downstream=False)

    played(app, 1, reruns)
    assert got == [7, 7]


def test_when_has_the_time_limit_and_the_retries_of_its_task() -> None:
    app, asked = Rota("memory://"), list[str]()

    @app.task(timeout=5, retry=Retry(1, delay=10, jitter=0))
    async def work() -> None: ...

    @app.task(retry=Retry(2, delay=10, jitter=0))
    async def other() -> None: ...

    async def hangs(inputs: Inputs) -> bool:
        asked.append("hangs")
        await asyncio.Event().wait()
        return True

    def misses(inputs: Inputs) -> bool:
        asked.append("misses")
        return bool(inputs.results["nobody"])

    day = app.flow("day", once=Period.day())
    day.step(work, when=hangs)
    day.step(other, when=misses)
    simulation = starts(app)
    assert {run.task: run.reason for run in simulation.runs} == {"work": Reason.TIMED_OUT, "other": Reason.FAILED}
    assert sorted(asked) == ["hangs"] * 2 + ["misses"] * 3


def test_when_and_args_are_asked_by_the_worker() -> None:
    app, got = Rota("memory://"), list[str]()

    @app.task
    async def today() -> int:
        return 0

    @app.task
    async def watch(date: str) -> None:
        got.append(f"watch {date}")

    @app.task
    async def tidy(date: str) -> None:
        got.append(f"tidy {date}")

    async def arguments(inputs: Inputs) -> dict[str, Any]:
        return {"date": f"{inputs.period} after {inputs.results}"}

    day = app.flow("day", once=Period.day(tz="Europe/Paris"))
    day.step(today)
    day.step(watch, after=today, when=lambda inputs: inputs.results["today"] > 0, args=arguments)
    day.step(tidy, after=watch, args=arguments)

    async def looks(simulation: Simulation) -> None:
        await day.start()
        await asyncio.sleep(60)
        states = {name: step.state for name, step in (await day.status()).steps.items()}
        assert states == {"today": "done", "watch": "skipped", "tidy": "done"}
        assert {answer.reason for answer in (await day.recheck()).values()} == {Reason.ALREADY_DONE}

    played(app, 1, looks)
    assert got == [f"tidy {DAY} after {{'watch': None}}"]


def test_a_step_that_skips_its_work_releases_those_behind_it() -> None:
    app, got = Rota("memory://"), list[str]()

    @app.task
    async def one() -> None:
        raise TaskError("skipped", "no races today")

    @app.task
    async def two() -> None:
        got.append("two")

    day = app.flow("day", once=Period.day(), recheck=Cron("*/7 * * * *"))
    day.step(one)
    day.step(two, after=one)
    simulation = played(app, 2)
    assert (len(simulation.of("one")), got) == (1, ["two"]), "and it is not rechecked"


def test_a_worker_without_the_code_of_the_flow_leaves_its_step_to_others() -> None:
    """It has the task, but not what `when` and `args` of the flow say: the run waits for who has, and fails at last."""
    app, calls = Rota("memory://"), list[str]()

    @app.task
    async def load(day: str = "") -> None:
        calls.append(day)

    async def puts(simulation: Simulation) -> None:
        spec = StepSpec(name="load", task="load", coded=True)
        run = as_step(call_of(load.bind()).to_run(), spec, {"load": spec}, "elsewhere", DAY, None)
        await (await app.client().store()).put([run])

    (run,) = played(app, 1, puts).of("load")
    assert [attempt.outcome for attempt in run.attempts] == ["unbindable"] * (UNBINDABLE_RELEASES + 1)
    assert (run.state, run.reason, calls) == (State.FAILED, Reason.UNBINDABLE, [])
    assert "no code of flow elsewhere that says how step load is called" in str(run.error)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda day, a, b: day.step(a, after=["b"]), "which is no step before it; there are: none yet"),
        (lambda day, a, b: day.step(a, after=["a"]), "step a waits for itself"),
        (lambda day, a, b: (day.step(a), day.step(a)), "two steps a; give one of them name="),
        (lambda day, a, b: day.step(a, name="x/y"), "holds no / and no @"),
        (lambda day, a, b: day.step(a, on_failure="panic"), "choose block, continue or stop"),
        (lambda day, a, b: day.step(Rota("memory://").task(name="z")(lambda: None)), "is not a task of this app"),
    ],
)
def test_what_is_wrong_with_a_step_is_said_when_it_is_defined(wrong: Callable[..., Any], why: str) -> None:
    app = Rota("memory://")
    a, b = (app.task(name=name)(lambda: None) for name in "ab")
    day = app.flow("day", once=Period.day())
    with pytest.raises(InvalidOptions, match=why):
        wrong(day, a, b)


def test_what_nothing_gives_is_said_when_it_is_defined() -> None:
    app = Rota("memory://")

    @app.task
    def needs(today: int, colour: str) -> None: ...

    @app.task
    def today() -> int:
        return 1

    @app.task(once=Period.day())
    def own() -> None: ...

    day = app.flow("day", once=Period.day())
    day.step(today)
    with pytest.raises(InvalidArguments, match="nothing gives its parameter 'colour'"):
        day.step(needs, after=today)
    with pytest.raises(InvalidArguments, match="no parameter 'color'"):
        day.step(needs, after=today, args={"color": "red", "colour": "red"})
    with pytest.raises(InvalidOptions, match="has a once= of its own"):
        day.step(own)
    with pytest.raises(InvalidOptions, match="flow day"):
        app.flow("day2@", once=Period.day())
    with pytest.raises(InvalidOptions, match="a period such as"):
        app.flow("day3", once="daily")  # type: ignore[arg-type]
