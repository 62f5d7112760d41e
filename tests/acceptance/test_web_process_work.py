"""Rows of the third source document: a decorator that leaves functions alone, a watchdog, a status."""

import asyncio
import logging

import pytest

from rota import Rota, RunFailed
from rota.stores.memory import MemoryBackend
from rota.testing.faults import FaultyBackend


def test_2_4_a_registered_function_is_still_callable_in_tests() -> None:
    app = Rota("memory://")

    @app.task(name="nightly", enabled=True)
    def clean(days: int) -> int:
        return days + 1

    assert clean(1) == 2
    assert clean.fn(1) == 2
    assert app.tasks["nightly"] is clean


async def test_2_5_what_dies_is_restarted_and_seen_and_start_is_idempotent() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def work() -> str:
        return "done"

    backend.fail("sweep", RuntimeError("the janitor dies"))
    backend.fail("claim", RuntimeError("the worker dies"))
    async with app:
        await app.start()
        assert await (await work.submit()).result(timeout=10) == "done"
        restarts = {loop.name: loop.restarts for loop in app.status().loops}
        assert restarts["worker"] == 1
        assert restarts["janitor"] == 1
        assert all(loop.alive for loop in app.status().loops)


async def test_2_9_status_per_task_and_the_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rota")
    app = Rota("memory://")
    started, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def report() -> None:
        started.set()
        await go.wait()

    @app.task
    async def broken() -> None:
        raise ValueError("no data")

    async with app:
        run = await report.submit()
        await started.wait()
        status = app.status().tasks["report"]
        assert (status.alive, status.running) == (True, 1)
        go.set()
        await run.result(timeout=10)
        with pytest.raises(RunFailed):
            await (await broken.submit()).result(timeout=10)
    for line in ("report", "started", "succeeded in", "broken", "failed after", "Traceback", "ValueError: no data"):
        assert line in caplog.text
