"""`ctx.extend(seconds)`: more time for one call, wherever it runs."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest

from rota import Context, Retry, Rota, Run, RunFailed, State
from rota.testing import simulate
from tests.engine import process_tasks

START = datetime(2026, 3, 1, tzinfo=UTC)


def test_a_handler_gets_the_time_that_it_adds_and_not_a_second_more() -> None:
    app = Rota("memory://")

    @app.task(timeout=10)
    async def work(added: list[int], seconds: int) -> None:
        for each in added:
            Context.current().extend(each)
            await asyncio.sleep(1)
        await asyncio.sleep(seconds - len(added))

    async def scenario(simulation: object) -> None:
        for added, seconds in (([], 9), ([60], 69), ([20, 40], 69), ([], 11), ([60], 71)):
            await work.submit(added, seconds)

    seen = simulate(app, START, START + timedelta(minutes=5), scenario=scenario).of("work")
    assert [run.state for run in seen] == [State.SUCCEEDED] * 3 + [State.FAILED] * 2
    assert [str(run.error) for run in seen[3:]] == [
        "TimeoutError: took longer than 10 s",
        "TimeoutError: took longer than 70 s",
    ]


def test_the_next_attempt_has_the_usual_time() -> None:
    app = Rota("memory://")

    @app.task(timeout=10, retry=Retry(1, delay=0))
    async def work(ctx: Context) -> None:
        if ctx.attempt == 1:
            ctx.extend(60)
        await asyncio.sleep(71)

    async def scenario(simulation: object) -> None:
        await work.submit()

    (run,) = simulate(app, START, START + timedelta(minutes=5), scenario=scenario).of("work")
    assert [round(attempt.seconds or 0) for attempt in run.attempts] == [70, 10]


@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_a_thread_and_a_child_process_get_it_too(executor: Literal["thread", "process"]) -> None:
    app = Rota("memory://")
    longer = app.task(executor=executor, timeout=0.1)(process_tasks.take_longer)

    async with app:
        assert await (await longer.submit(60)).result(timeout=60) == "done"
        with pytest.raises(RunFailed, match=r"took longer than 0\.1 s"):
            await (await longer.submit(0)).result(timeout=60)


@pytest.mark.parametrize("seconds", [-1, float("nan"), 1e12, "5", True])
def test_only_a_number_of_seconds_is_taken(seconds: object) -> None:
    with pytest.raises(ValueError, match="a number of seconds from 0"):
        Context(Run(id="r")).extend(seconds)  # type: ignore[arg-type]
