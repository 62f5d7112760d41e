"""The tour, part 1: write a task, submit it, get its result."""

import pytest

from rota import InvalidArguments, Rota, RunFailed, State


async def test_a_task_is_still_its_function() -> None:
    app = Rota("memory://")

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    assert await greet("Ada") == "hello Ada"


async def test_a_submitted_run_is_done_by_the_engine() -> None:
    app = Rota("memory://")

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    async with app:
        run = await greet.submit("Ada")
        assert await run.result(timeout=10) == "hello Ada"


async def test_submitting_needs_no_engine_and_the_run_waits_for_one() -> None:
    app = Rota("memory://")

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    run = await greet.submit("Ada")
    assert (await run.refresh()).state is State.QUEUED
    async with app:
        assert await run.result(timeout=10) == "hello Ada"


async def test_plain_functions_run_in_threads() -> None:
    app = Rota("memory://")

    @app.task
    def add(a: int, b: int = 1) -> int:
        return a + b

    async with app:
        assert await (await add.submit(1, b=2)).result(timeout=10) == 3
        assert await (await add.submit(1)).result(timeout=10) == 2


async def test_wrong_arguments_fail_where_they_are_written() -> None:
    app = Rota("memory://")

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    with pytest.raises(InvalidArguments, match="greet"):
        await greet.submit(42)  # type: ignore[arg-type]


async def test_a_failed_run_says_why() -> None:
    app = Rota("memory://")

    @app.task
    async def divide(a: int, b: int) -> float:
        return a / b

    async with app:
        run = await divide.submit(1, 0)
        with pytest.raises(RunFailed, match="ZeroDivisionError: division by zero") as caught:
            await run.result(timeout=10)
    assert caught.value.run.error is not None
    assert "return a / b" in caught.value.run.error.traceback
