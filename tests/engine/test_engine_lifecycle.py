"""The life of a worker process: resources, hooks, status, health, synchronous callers."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rota import Context, Event, InvalidOptions, Rota, RunFailed, State, StoreUnavailable, UnknownTask
from rota.client.operations import OPERATION
from rota.domain.spec import TaskSpec
from rota.errors import NotRunning
from rota.store import WorkerSeen
from rota.stores.memory import MemoryBackend
from storekit.faults import FaultyBackend


async def test_resources_are_opened_once_per_engine_and_closed_after_the_last_handler() -> None:
    story: list[str] = []

    @asynccontextmanager
    async def pools() -> AsyncIterator[str]:
        story.append("open")
        yield "the pool"
        story.append("close")

    app = Rota("memory://", resources=pools)

    @app.task
    async def use(ctx: Context) -> str:
        story.append("used")
        return str(ctx.resources)

    async with app:
        assert await (await use.submit()).result(timeout=10) == "the pool"
    assert story == ["open", "used", "close"]


async def test_an_engine_whose_resources_fail_does_not_start() -> None:
    down = True

    @asynccontextmanager
    async def broken() -> AsyncIterator[None]:
        if down:
            raise ConnectionError("no database")
        yield

    app = Rota("memory://", resources=broken)
    with pytest.raises(ConnectionError, match="no database"):
        await app.start()
    assert not app.status().running


async def test_hooks_hear_what_happens_and_cannot_do_harm() -> None:
    app = Rota("memory://")
    heard: list[tuple[str, str, str]] = []

    def listen(event: Event) -> None:
        heard.append((event.name, event.task, event.reason))

    async def listen_later(event: Event) -> None:
        await asyncio.sleep(0)
        heard.append(("later", event.task, event.reason))

    def broken(event: Event) -> None:
        raise RuntimeError("a bad hook")

    @app.task
    async def fail() -> None:
        raise ValueError("no")

    @app.task
    async def fine() -> None: ...

    app.on("failed", broken)
    app.on("failed", listen)
    app.on("failed", listen_later)
    app.on("succeeded", listen)
    with pytest.raises(InvalidOptions, match="there are started"):
        app.on("exploded", listen)  # type: ignore[arg-type]
    async with app:
        with pytest.raises(RunFailed):
            await (await fail.submit()).result(timeout=10)
        await (await fine.submit()).result(timeout=10)
    assert sorted(heard) == [("failed", "fail", "failed"), ("later", "fail", "failed"), ("succeeded", "fine", "")]


async def test_status_tells_what_runs_here() -> None:
    app = Rota("memory://", concurrency=3)
    started, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> None:
        started.set()
        await go.wait()

    @app.task
    async def quick() -> None: ...

    assert not app.status().running
    async with app:
        await slow.submit()
        await started.wait()
        status = app.status()
        assert status.running
        assert (status.free, status.overdue) == (2, 0)
        assert (status.tasks["slow"].running, status.tasks["quick"].running) == (1, 0)
        assert status.tasks["quick"].alive
        assert {loop.name for loop in status.loops if loop.alive} >= {"worker", "settler", "hints", "janitor"}
        go.set()


async def test_health_is_proof_of_claiming() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def quick() -> None: ...

    assert await app.health(), "a client is healthy if its store answers"
    async with app:
        await (await quick.submit()).result(timeout=10)
        health = await app.health()
        assert (health.ok, health.store, health.claiming) == (True, True, True)
        backend.fail("runs", StoreUnavailable("the store is gone"), times=2)
        assert not await app.health()


async def test_a_worker_is_seen_by_others_with_what_it_does(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db", concurrency=7)

    @app.task(timeout=5)
    async def quick() -> None:
        """Does little."""

    async with app:
        await (await quick.submit()).result(timeout=10)
        store = await app.client().store()
        (worker,) = (await store.rows(WorkerSeen)).items
        assert (worker.tasks, worker.report.pid, worker.report.seats) == (("quick", OPERATION), os.getpid(), 7)
        (spec,) = (await store.rows(TaskSpec)).items
        assert (spec.name, spec.description, spec.policy.timeout, spec.executor) == ("quick", "Does little.", 5, "loop")


async def test_depths_and_clear() -> None:
    app = Rota("memory://")

    @app.task
    async def work(n: int) -> None: ...

    handles = await app.submit_many([work.bind(n) for n in range(5)])
    await handles[0].pause()
    depth = (await app.depths())["work"]
    assert (depth.queued, depth.running, depth.paused) == (4, 0, 1)
    assert await app.clear("work") == 5
    assert not any((await app.depths()).values())
    assert ((await handles[1].refresh()).state, (await handles[1].refresh()).reason) == ("cancelled", "dropped")


async def test_a_renamed_task_still_answers_to_its_old_name() -> None:
    backend = MemoryBackend()
    before, after = Rota(backend), Rota(backend)

    @before.task
    async def send_mail(to: str) -> str:
        return "old"

    @after.task(aliases=["send_mail"])
    async def send(to: str) -> str:
        return f"to {to}"

    run = await send_mail.submit("ada")
    async with after:
        assert await after.handle(run.id, "send_mail").result(timeout=10) == "to ada"


async def test_a_task_can_be_submitted_by_name_without_its_code() -> None:
    backend = MemoryBackend()
    here, there = Rota(backend), Rota(backend)

    @there.task
    async def resize(path: str, width: int = 800) -> str:
        return f"{path}@{width}"

    run = await here.submit("resize", path="c.png")
    with pytest.raises(UnknownTask, match="need names"):
        await here.submit("resize", "c.png")
    async with there:
        assert await run.result(timeout=10) == "c.png@800"
        assert await (await there.submit("resize", "d.png", width=1)).result(timeout=10) == "d.png@1"


def test_synchronous_code_submits_through_the_portal(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db")

    @app.task
    def double(n: int) -> int:
        return 2 * n

    run = double.submit_sync(4)
    assert double.using(delay=60).submit_sync(5).id != run.id

    async def look() -> State:
        async with app:
            assert await run.result(timeout=10) == 8
            with pytest.raises(NotRunning, match="await"):
                double.submit_sync(1)
        return (await run.refresh()).state

    assert asyncio.run(look()) is State.SUCCEEDED


async def test_a_sync_task_can_use_async_services_through_the_portal() -> None:
    app = Rota("memory://")

    async def service(n: int) -> int:
        await asyncio.sleep(0)
        return n + 1

    @app.task
    def work(n: int) -> int:
        return app.portal.call(lambda: service(n))

    async with app:
        assert await (await work.submit(1)).result(timeout=10) == 2


def test_the_app_of_the_process_can_be_had_anywhere() -> None:
    app = Rota("memory://")
    assert Rota.current() is app
