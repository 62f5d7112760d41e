"""Rows of the fifth source document: operations on a queue."""

import asyncio
from pathlib import Path

import pytest

from rota import Context, QueueFull, Rota, RunCancelled, State
from rota.store import Depth
from rota.stores.memory import MemoryBackend
from rota.testing.contract import new_run
from rota.testing.faults import FaultyBackend


async def test_4_1_submit_does_not_block_and_the_answer_is_had_later_by_id() -> None:
    backend = MemoryBackend()
    sender, worker = Rota(backend), Rota(backend)

    @worker.task
    async def answer(question: str) -> str:
        return question.upper()

    id = (await sender.submit("answer", question="why")).id
    async with worker:
        assert await sender.handle(id).result(timeout=10) == "WHY"


async def test_4_2_run_cancel_pause_resume() -> None:
    app = Rota("memory://")
    started = asyncio.Event()

    @app.task
    async def agent(ctx: Context) -> str:
        saved: dict[str, int] | None = ctx.saved
        if saved is None:
            ctx.checkpoint({"step": 1})
            started.set()
            await asyncio.Event().wait()
            return "never"
        return f"resumed at step {saved['step']}"

    @app.task
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async with app:
        run = await agent.submit()
        await started.wait()
        assert await run.pause()
        async with asyncio.timeout(10):
            while (await run.refresh()).state is not State.PAUSED:
                await app.client().news()
        assert await run.resume()
        assert await run.result(timeout=10) == "resumed at step 1"
        started.clear()
        doomed = await endless.submit()
        await started.wait()
        assert await doomed.cancel()
        with pytest.raises(RunCancelled):
            await doomed.result(timeout=10)


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{tmp}/rota.db"])
async def test_4_3_the_same_code_on_every_store_chosen_by_the_environment(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_URL", url.format(tmp=tmp_path))
    app = Rota()

    @app.task
    async def work() -> str:
        return "done"

    async with app:
        assert await (await work.submit()).result(timeout=10) == "done"


async def test_4_4_a_bounded_queue_of_100_lets_the_sender_wait() -> None:
    app = Rota("memory://")

    @app.task(max_pending=100)
    async def work(n: int) -> int:
        return n

    await app.submit_many([work.bind(n) for n in range(100)])
    with pytest.raises(QueueFull):
        await work.using(wait=False).submit(100)
    sender = asyncio.create_task(work.submit(100))
    async with app:
        assert await (await sender).result(timeout=10) == 100


async def test_4_6_a_lost_reply_never_makes_a_second_run() -> None:
    """The client sends the same id again: the store answers the same."""
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    calls = 0

    @app.task
    async def work() -> None:
        nonlocal calls
        calls += 1

    backend.fail("put", "reply lost", times=2)
    async with app:
        await (await work.submit()).result(timeout=10)
    assert calls == 1


async def test_4_8_health_queue_length_clear() -> None:
    app = Rota("memory://")

    @app.task
    async def work() -> None: ...

    await app.submit_many([work.bind() for _ in range(3)])
    assert await app.health()
    assert (await app.depths())["work"].queued == 3
    assert await app.clear("work") == 3


async def test_4_12_the_queue_length_of_a_known_task_is_0_when_nothing_waits() -> None:
    backend = MemoryBackend()
    app, elsewhere = Rota(backend), Rota(backend)

    @app.task
    async def run_task() -> None: ...

    assert (await app.depths())["run_task"] == Depth("run_task", 0, 0), "known by its code"
    async with app:
        await (await run_task.submit()).result(timeout=10)
    assert (await elsewhere.depths())["run_task"].queued == 0, "known by what a worker published"
    assert not any((await elsewhere.depths()).values())
    await (await elsewhere.client().store()).put([new_run("nobodys")])
    assert {name: depth.queued for name, depth in (await elsewhere.depths()).items()} == {"nobodys": 1, "run_task": 0}


async def test_4_9_a_context_manager_whose_close_is_idempotent() -> None:
    async with Rota("memory://") as app:
        assert app.status().running
    await app.stop()
    await app.stop()
    assert not app.status().running
