"""What people ask of one worker from afar: other seats, quiet, stop."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from rota import Rota, State, WorkerNotFound
from rota.app.core import core_of
from rota.store import WorkerSeen
from rota.stores.memory import MemoryBackend


async def until(app: Rota, met: Callable[[WorkerSeen], bool]) -> str:
    """Wait until what the store knows of the only worker meets the condition. Returns the name of the worker."""
    client = app.client()
    heard = await client.news(0)
    while True:
        seen = (await client.rows(WorkerSeen)).items
        if seen and met(seen[0]):
            return seen[0].name
        heard = await client.news(0.02, heard)


@pytest.fixture
def hold() -> tuple[Rota, asyncio.Event]:
    app, gate = Rota("memory://", concurrency=2), asyncio.Event()

    @app.task(name="hold")
    async def wait() -> None:
        await gate.wait()

    @app.task(name="quick")
    async def quick() -> str:
        return "done"

    return app, gate


async def test_a_quiet_worker_starts_nothing_until_it_is_resumed(hold: tuple[Rota, asyncio.Event]) -> None:
    app, _ = hold
    async with app:
        name = await until(app, lambda seen: seen.idle)
        assert await app.workers.names() == [name]
        assert await app.workers.quiet(name)
        assert not await app.workers.quiet(name), "it was quiet before"
        await until(app, lambda seen: not seen.idle)
        run = await app.submit("quick")
        with pytest.raises(TimeoutError):
            await run.result(timeout=0.2)
        assert (await run.refresh()).state is State.QUEUED
        for why in (await run.why(), await app.why("quick")):
            assert f"the 1 live worker that knows quick is quiet; `rota workers resume {name}`" in why.answer
        assert "quiet" not in str(await app.why("hold")), "nothing of it waits"
        assert await app.workers.resume(name[:10])
        assert await run.result(timeout=4) == "done"


async def test_a_worker_with_fewer_seats_lets_its_runs_end(hold: tuple[Rota, asyncio.Event]) -> None:
    app, gate = hold
    runs = [await app.submit("hold") for _ in range(6)]
    async with app:
        name = await until(app, lambda seen: app.status().tasks["hold"].running == 2)
        await app.workers.seats(name, 4)
        await until(app, lambda seen: app.status().tasks["hold"].running == 4)
        await app.workers.seats(name, 1)
        await until(app, lambda seen: seen.report.seats == 1)
        assert app.status().tasks["hold"].running == 4, "runs in hand go on"
        await app.workers.seats(name, 0)
        await until(app, lambda seen: seen.report.seats == 2)
        gate.set()
        for run in runs:
            await run.result(timeout=10)


async def test_a_worker_that_is_asked_to_stop_drains_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    backend = MemoryBackend()
    app, other = Rota(backend), Rota(backend)
    started, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> str:
        started.set()
        await go.wait()
        return "done"

    with caplog.at_level(logging.INFO, "rota"):
        await app.start()
        engine = core_of(app).engine
        run = await slow.submit()
        await started.wait()
        name = engine.name
        assert await other.workers.stop(name)
        await until(app, lambda seen: not seen.tasks)
        later = await slow.submit()
        go.set()
        await asyncio.wait_for(engine.left.wait(), 10)
    assert (await run.refresh()).state is State.SUCCEEDED
    assert (await later.refresh()).state is State.QUEUED
    assert not app.status().running
    assert f"worker {name} stops: it was asked to stop" in caplog.messages
    with pytest.raises(WorkerNotFound, match="has stopped"):
        await other.workers.quiet(name)
    async with app:  # it may be started again, under another name
        assert await later.result(timeout=4) == "done"
    await app.stop()


async def test_a_name_that_fits_none_or_several_is_refused() -> None:
    backend = MemoryBackend()
    apps = [Rota(backend, name="jobs"), Rota(backend, name="jobs")]
    for app in apps:
        app.task(name="quick")(lambda: None)
        await app.start()
    try:
        for app in apps:
            await (await app.submit("quick")).result(timeout=4)
        while len(await apps[0].workers.names()) < 2:
            await apps[0].client().news(0.02)
        with pytest.raises(WorkerNotFound, match="the names of 2 workers begin with jobs-: jobs-"):
            await apps[0].workers.quiet("jobs-")
        with pytest.raises(WorkerNotFound, match="no worker other was seen in the last hour"):
            await apps[0].workers.stop("other")
    finally:
        for app in apps:
            await app.stop()
