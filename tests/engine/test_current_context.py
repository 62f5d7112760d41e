"""`Context.current()`: the run that this code works for, without a parameter."""

import asyncio

import pytest

from rota import Context, NotRunning, Rota
from tests.engine import process_tasks


def test_outside_of_a_handler_there_is_no_context() -> None:
    with pytest.raises(NotRunning, match="no handler runs here"):
        Context.current()


async def test_each_handler_finds_the_context_of_its_own_run() -> None:
    app = Rota("memory://")
    both = asyncio.Barrier(2)

    @app.task
    async def on_the_loop() -> str:
        await both.wait()
        return await asyncio.create_task(deep_inside())

    async def deep_inside() -> str:
        return await asyncio.to_thread(process_tasks.whose_run)

    @app.task
    def in_a_thread() -> str:
        assert Rota.current() is app
        return process_tasks.whose_run()

    async with app:
        runs = [await on_the_loop.submit(), await on_the_loop.submit(), await in_a_thread.submit()]
        for run in runs:
            assert await run.result(timeout=10) == run.id
    with pytest.raises(NotRunning):
        Context.current()


async def test_the_context_is_that_of_the_parameter_also_with_a_timeout() -> None:
    app = Rota("memory://")

    @app.task(timeout=60)
    async def same(ctx: Context) -> bool:
        return Context.current() is ctx

    async with app:
        assert await (await same.submit()).result(timeout=10)


async def test_a_child_process_finds_the_context_of_its_run() -> None:
    app = Rota("memory://")
    plain = app.task(executor="process")(process_tasks.whose_run)
    awaited = app.task(executor="process")(process_tasks.whose_run_async)

    async with app:
        for run in (await plain.submit(), await awaited.submit(), await plain.submit()):
            assert await run.result(timeout=60) == run.id
