"""The worker: seats, hints, unknown tasks, lost replies."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rota import Context, Retry, Rota, RunFailed, State
from rota.app.core import core_of
from rota.store import Hint, WorkerSeen
from rota.stores.memory import MemoryBackend
from rota.stores.memory.store import MemoryStore
from rota.task import call_of
from storekit.faults import FaultyBackend


async def test_a_worker_never_holds_more_runs_than_it_has_seats() -> None:
    app = Rota("memory://", concurrency=3)
    running = most = 0
    gate = asyncio.Event()
    full = asyncio.Event()

    @app.task
    async def hold() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await gate.wait()
        running -= 1

    handles = await app.submit_many([hold.bind() for _ in range(10)])
    async with app:
        await full.wait()
        depths = (await (await app.client().store()).depths()).items
        assert (depths[0].running, depths[0].queued) == (3, 7), "the rest stays in the store, for others"
        gate.set()
        for handle in handles:
            await handle.result(timeout=10)
    assert most == 3


async def test_an_unknown_task_waits_for_a_worker_that_knows_it() -> None:
    backend = MemoryBackend()
    old, new = Rota(backend), Rota(backend)

    @new.task
    async def modern() -> str:
        return "done"

    @old.task
    async def known() -> str:
        return "done"

    run = await modern.submit()
    async with old:
        await (await known.submit()).result(timeout=10)
        assert (await run.refresh()).state is State.QUEUED
    async with new:
        assert await run.result(timeout=10) == "done"


async def test_an_idle_worker_is_woken_by_a_hint_not_by_polling() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def quick() -> None: ...

    async with app:
        await (await quick.submit()).result(timeout=4)  # the poll comes after 5 s only
        before = backend.calls.count("claim")
        for _ in range(20):
            await (await quick.submit()).result(timeout=4)
        assert backend.calls.count("claim") - before <= 2 * 20


async def test_a_lost_claim_reply_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def quick() -> None: ...

    backend.fail("claim", "reply lost", times=2)
    run = await quick.submit()
    async with app:
        await run.result(timeout=10)
    seen = await run.refresh()
    assert (seen.fence, seen.losses) == (1, 0), "the same batch came again; nothing lapsed"
    assert "cannot claim" in caplog.text


@pytest.mark.parametrize("fault", ["request lost", "reply lost"])
async def test_an_ending_is_sent_until_the_store_has_answered(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    calls = 0

    @app.task
    async def count() -> int:
        nonlocal calls
        calls += 1
        return calls

    backend.fail("settle", fault, times=2)  # type: ignore[arg-type]
    async with app:
        run = await count.submit()
        assert await run.result(timeout=10) == 1
    assert (await run.refresh()).fence == 1
    assert "cannot record 1 ending" in caplog.text
    assert "refused" not in caplog.text


async def test_a_stumbling_loop_is_restarted_and_seen(caplog: pytest.LogCaptureFixture) -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def quick() -> str:
        return "done"

    backend.fail("claim", RuntimeError("a bug"))
    async with app:
        run = await quick.submit()
        assert await run.result(timeout=10) == "done"
        worker = next(loop for loop in core_of(app).engine.loops if loop.name == "worker")
        assert worker.alive
        assert (worker.restarts, worker.error) == (1, "RuntimeError: a bug")
    assert "the worker loop failed and is restarted" in caplog.text


async def test_the_log_tells_the_life_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rota")
    app = Rota("memory://")

    @app.task(retry=Retry(1, delay=0))
    async def flaky(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise OSError("no luck")

    async with app:
        run = await flaky.submit()
        await run.result(timeout=10)
    text = caplog.text
    for line in (
        f"flaky {run.id} started (fence 1)",
        f"flaky {run.id} failed after",
        "it will be tried again: OSError: no luck",
        'raise OSError("no luck")',
        f"flaky {run.id} started (fence 2)",
        f"flaky {run.id} succeeded in",
    ):
        assert line in text


async def test_arguments_that_no_longer_fit_are_left_to_others_and_then_fail() -> None:
    backend = MemoryBackend()
    old, new = Rota(backend), Rota(backend)

    @old.task(name="mail")
    async def old_mail(to: str) -> None: ...

    @new.task(name="mail")
    async def new_mail(recipient: str) -> None: ...

    run = await old_mail.submit("ada")
    for _ in range(4):  # released three times, for 5, 10 and 20 s
        async with new:
            await (await new_mail.submit("ada")).result(timeout=10)
        backend.skew += 60
    with pytest.raises(RunFailed, match=r"do not fit mail\(recipient: str\)"):
        await run.result(timeout=10)
    assert [a.outcome for a in (await run.refresh()).attempts] == ["unbindable"] * 4


async def test_a_hint_from_before_the_worker_listens_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ear that opens after the first claim: what came in between is hinted to nobody."""
    backend, ear, called = MemoryBackend(), asyncio.Event(), asyncio.Event()
    app, elsewhere = Rota(backend), Rota(backend)
    changes = MemoryStore.changes

    @asynccontextmanager
    async def late(store: MemoryStore, worker: str | None = None) -> AsyncGenerator[AsyncIterator[Hint]]:
        await ear.wait()
        async with changes(store, worker) as hints:
            yield hints

    monkeypatch.setattr(MemoryStore, "changes", late)

    @app.task
    async def quick() -> None:
        called.set()

    async with app, elsewhere.client():
        store = await elsewhere.client().store()
        while not [seen for seen in (await store.rows(WorkerSeen)).items if seen.idle]:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await store.put([call_of(quick.bind()).to_run()])
        ear.set()
        async with asyncio.timeout(4):  # the poll comes after 5 s only
            await called.wait()
