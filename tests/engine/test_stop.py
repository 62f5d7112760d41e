"""Stopping: nothing is lost, and what is given back can be had by another worker at once."""

import asyncio
import logging
import threading

import pytest

from rota import Rota, RunFailed, RunHandle, State
from rota.engine import calls
from rota.stores.memory import MemoryBackend
from storekit.faults import FaultyBackend


async def two_workers() -> tuple[Rota, Rota, RunHandle[str]]:
    """The app whose worker has started a run, another app whose worker would end it at once, and the run."""
    backend = MemoryBackend()
    first, second = Rota(backend), Rota(backend)
    started = asyncio.Event()

    @first.task(name="work")
    async def endless() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    @second.task(name="work")
    async def quick() -> str:
        return "done"

    await first.start()
    run = await quick.submit()
    await started.wait()
    return first, second, run


async def test_stop_waits_for_running_handlers() -> None:
    app = Rota("memory://")
    started, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> str:
        started.set()
        await go.wait()
        return "done"

    await app.start()
    run = await slow.submit()
    await started.wait()
    stopping = asyncio.create_task(app.stop(grace=30))
    await asyncio.sleep(0)
    go.set()
    await stopping
    assert (await run.refresh()).state is State.SUCCEEDED


async def test_what_does_not_end_within_grace_is_given_back_and_charged_nothing() -> None:
    first, second, run = await two_workers()
    await first.stop(grace=0)
    seen = await run.refresh()
    assert (seen.state, seen.failures, seen.losses) == (State.QUEUED, 0, 0)
    assert [attempt.outcome for attempt in seen.attempts] == ["interrupted"]
    async with second:
        assert await run.result(timeout=4) == "done"


async def test_a_run_given_back_reaches_an_idle_worker_by_hint() -> None:
    first, second, run = await two_workers()
    async with second:
        stopping = asyncio.create_task(first.stop(grace=0))
        assert await run.result(timeout=4) == "done", "the poll comes after 5 s only"
        await stopping


async def test_at_most_once_work_is_not_given_back() -> None:
    app = Rota("memory://")
    started = asyncio.Event()

    @app.task(lost="fail")
    async def pay() -> None:
        started.set()
        await asyncio.Event().wait()

    await app.start()
    run = await pay.submit()
    await started.wait()
    await app.stop(grace=0)
    assert (await run.refresh()).reason == "interrupted"
    with pytest.raises(RunFailed):
        await run.result(timeout=10)


async def test_a_thread_that_does_not_stop_is_given_back_as_it_is() -> None:
    app = Rota("memory://")
    started, go = threading.Event(), threading.Event()

    @app.task
    def deaf() -> None:
        started.set()
        go.wait(60)

    await app.start()
    run = await deaf.submit()
    await asyncio.to_thread(started.wait, 10)
    await app.stop(grace=0)
    assert (await run.refresh()).state is State.QUEUED
    go.set()


async def test_nothing_is_claimed_after_stop_began() -> None:
    app = Rota("memory://", concurrency=1)
    started, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> None:
        started.set()
        await go.wait()

    await app.start()
    first, second = await slow.submit(), await slow.submit()
    await started.wait()
    stopping = asyncio.create_task(app.stop())
    await asyncio.sleep(0)
    go.set()
    await stopping
    assert (await first.refresh()).state is State.SUCCEEDED
    assert (await second.refresh()).fence == 0


async def test_endings_that_the_store_did_not_take_are_recorded_before_stop_returns() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    started, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> None:
        started.set()
        await go.wait()

    await app.start()
    run = await slow.submit()
    await started.wait()
    backend.fail("settle", "request lost", times=2)
    go.set()
    await app.stop()
    assert (await run.refresh()).state is State.SUCCEEDED


async def test_starting_and_stopping_twice_is_harmless() -> None:
    app = Rota("memory://")

    @app.task
    async def quick() -> str:
        return "done"

    await app.start()
    await app.start()
    assert await (await quick.submit()).result(timeout=10) == "done"
    await asyncio.gather(app.stop(), app.stop())
    await app.stop()
    async with app:
        assert await (await quick.submit()).result(timeout=10) == "done"


async def test_a_thread_that_does_not_listen_is_not_waited_for_because_of_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(calls, "CLEANUP", 1000.0)
    caplog.set_level(logging.INFO, "rota")
    app = Rota("memory://")
    begun, deaf_begun, release = asyncio.Event(), threading.Event(), threading.Event()

    @app.task
    async def listens() -> None:
        begun.set()
        await asyncio.Event().wait()

    @app.task
    def deaf() -> None:
        deaf_begun.set()
        release.wait()

    await app.start()
    runs = [await listens.submit(), await deaf.submit()]
    await begun.wait()
    await asyncio.to_thread(deaf_begun.wait)
    async with asyncio.timeout(30):
        await app.stop(grace=0)
    assert [(await run.refresh()).state for run in runs] == [State.QUEUED, State.QUEUED]

    # As asyncio.run ends what is left: nothing is told of it after the worker has said that it stopped.
    left = [task for task in asyncio.all_tasks() if task.get_name().startswith("deaf ")]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    release.set()
    assert left
    assert caplog.records[-1].getMessage().endswith("stopped")


async def test_a_call_that_ends_while_its_worker_stops_is_counted() -> None:
    app = Rota(MemoryBackend(), grace=30)
    began, ends = asyncio.Event(), asyncio.Event()

    @app.task
    async def last() -> None:
        began.set()
        await ends.wait()

    async with app.client() as client:
        await app.start()
        await last.submit()
        await began.wait()
        stopping = asyncio.create_task(app.stop())
        while any(loop.name == "worker" and loop.alive for loop in app.status().loops):
            await client.news(0.05)  # until the worker has said that it stops
        ends.set()
        await stopping
        (stat,) = (await client.stats()).items
    assert (stat.tally.task, stat.tally.succeeded) == ("last", 1)
