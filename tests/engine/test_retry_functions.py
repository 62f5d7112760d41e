"""Retries without end, by a factor and by a function."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from rota import Context, InvalidOptions, Retry, Rota, State, TaskError
from rota.domain.failure import Failure
from rota.testing import simulate
from tests.engine import process_tasks

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def app() -> Rota:
    return Rota("memory://")


def waits(app: Rota, task: str = "fail", hours: float = 24) -> tuple[list[int], State]:
    """Submit `task` and return the seconds between its attempts, and the state at the end of the simulation."""

    async def scenario(simulation: object) -> None:
        await app.submit(task)

    (run,) = simulate(app, START, START + timedelta(hours=hours), scenario=scenario).of(task)
    starts = [attempt.claimed_at for attempt in run.attempts]
    return [round(later - earlier) for earlier, later in pairwise(starts)], run.state


def test_retry_none_retries_until_the_call_succeeds(app: Rota) -> None:
    @app.task(retry=Retry(None, backoff="fixed", delay=60, jitter=0))
    async def fail(ctx: Context) -> int:
        if ctx.attempt <= 200:
            raise ConnectionError
        return ctx.attempt

    found, state = waits(app)
    assert state is State.SUCCEEDED
    assert set(found) == {60}


def test_an_exponential_wait_grows_by_the_factor(app: Rota) -> None:
    @app.task(retry=Retry(6, delay=2, factor=3, jitter=0, max_delay=200))
    async def fail() -> None:
        raise ConnectionError

    assert waits(app) == ([2, 6, 18, 54, 162, 200], State.FAILED)


def test_a_function_says_how_long_to_wait_and_when_to_give_up(app: Rota) -> None:
    seen: list[tuple[int, str]] = []

    def after(failures: int, failure: Failure) -> float | None:
        seen.append((failures, str(failure)))
        return None if failures == 4 else failures * 10

    @app.task(retry=Retry(None, after=after))
    async def fail(ctx: Context) -> None:
        if ctx.attempt == 2:
            raise TaskError("failed", "the second way")
        raise ConnectionError(f"number {ctx.attempt}")

    assert waits(app) == ([10, 20, 30], State.FAILED)
    assert seen == [
        (1, "ConnectionError: number 1"),
        (2, "TaskError: the second way"),
        (3, "ConnectionError: number 3"),
        (4, "ConnectionError: number 4"),
    ]


def test_the_limit_holds_beside_a_function(app: Rota) -> None:
    @app.task(retry=Retry(2, after=lambda failures, failure: 5))
    async def fail() -> None:
        raise ConnectionError

    assert waits(app) == ([5, 5], State.FAILED)


@pytest.mark.parametrize("answer", ["soon", -1, float("nan"), True])
def test_a_function_that_fails_leaves_the_usual_backoff(
    app: Rota, answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(retry=Retry(2, delay=7, jitter=0, after=lambda failures, failure: answer))  # type: ignore[arg-type, return-value]
    async def fail() -> None:
        raise ConnectionError

    assert waits(app) == ([7, 14], State.FAILED)
    assert "the usual backoff is used" in caplog.text


async def test_a_child_process_is_retried_by_the_function_of_its_worker(app: Rota) -> None:
    seen: list[str] = []

    def after(failures: int, failure: Failure) -> float | None:
        seen.append(failure.type)
        return 0 if failures < 2 else None

    stumble = app.task(executor="process", retry=Retry(9, after=after))(process_tasks.stumble)
    async with app:
        run = await stumble.submit("badly")
        with pytest.raises(Exception, match="badly"):
            await run.result(timeout=60)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("retry", "words"),
    [
        (lambda: Retry(-1), "a whole number from 0, or None"),
        (lambda: Retry(5, factor=0.5), "a number from 1 to 1000"),
        (lambda: Retry(5, after=5), "a function of"),  # type: ignore[arg-type]
    ],
)
def test_wrong_values_are_refused(retry: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        retry()  # type: ignore[operator]


async def test_a_submit_takes_a_factor_and_no_function(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    run = await work.using(retry=Retry(None, factor=5)).submit()
    assert (await run.refresh()).policy.retry == Retry(None, factor=5)
    with pytest.raises(InvalidOptions, match="a function, which no run stores"):
        await work.using(retry=Retry(1, after=lambda failures, failure: 1)).submit()
