"""What handlers say and leave: any text will do, nothing gets lost on the way, and the right ones hear of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rota import Context, Limit, Refused, Retry, Rota, RunFailed, State, TaskError
from rota.store import ClaimRequest
from rota.stores.memory import MemoryBackend
from storekit.faults import FaultyBackend


@pytest.mark.parametrize("said", [404, ["a"], "half a pair: \udcff", ValueError("no")])
async def test_a_handler_may_say_anything_and_the_others_go_on(tmp_path: Path, said: Any) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db")

    @app.task(retry=Retry(1, delay=0))
    async def talk(ctx: Context) -> None:
        ctx.warn(said)
        ctx.progress(0.5, said)
        raise TaskError("failed", said)

    @app.task
    async def good() -> str:
        return "fine"

    async with app:
        run = await talk.submit()
        with pytest.raises(RunFailed):
            await run.result(timeout=10)
        assert await (await good.submit()).result(timeout=10) == "fine"
    seen = await run.refresh()
    assert (seen.reason, seen.failures, len(seen.attempts[0].warnings)) == ("failed", 2, 1)


async def test_a_checkpoint_whose_renewal_failed_is_carried_by_the_next() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend, lease=0.9)
    go = asyncio.Event()
    backend.fail("renew", "request lost", times=2)

    @app.task
    async def work(ctx: Context) -> None:
        ctx.checkpoint({"page": 7})
        await go.wait()

    async with app:
        run = await work.submit()
        async with asyncio.timeout(10):
            while (await run.refresh()).saved is None:
                await app.client().news()
        assert (await run.refresh()).saved == b'{"page":7}'
        go.set()


async def test_a_retry_holds_the_key_of_the_run_it_repeats() -> None:
    app = Rota("memory://")
    started, go = asyncio.Event(), asyncio.Event()
    fail = True

    @app.task(key="{account}", unique="done")
    async def pay(account: str) -> None:
        if fail:
            raise OSError("no network")
        started.set()
        await go.wait()

    async with app:
        run = await pay.submit("a")
        with pytest.raises(RunFailed):
            await run.result(timeout=10)
        fail = False
        again = await run.retry()
        await started.wait()
        with pytest.raises(Refused, match="already_running"):
            await pay.submit("a")
        go.set()
        await again.result(timeout=10)
        with pytest.raises(Refused, match="already_done"):
            await pay.submit("a")


async def test_stop_waits_for_cleanup_before_it_closes_resources() -> None:
    story: list[str] = []

    @asynccontextmanager
    async def pool() -> AsyncIterator[str]:
        yield "pool"
        story.append("pool closed")

    app = Rota("memory://", resources=pool)
    started, cleaned = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            asyncio.get_running_loop().call_later(0.2, cleaned.set)
            await cleaned.wait()
            story.append("cleaned up")

    await app.start()
    await work.submit()
    await started.wait()
    await app.stop(grace=0)
    assert story == ["cleaned up", "pool closed"]


async def test_hooks_hear_of_rescued_and_refused_runs_too() -> None:
    backend = MemoryBackend()
    app = Rota(backend)
    heard: list[tuple[str, str]] = []
    for name in ("lost", "failed", "refused"):
        app.on(name, lambda event: heard.append((event.name, event.reason)))

    @app.task
    async def again() -> None: ...

    @app.task(lost="fail")
    async def once() -> None: ...

    @app.task(enabled=False)
    async def off() -> None: ...

    await again.submit()
    await once.submit()
    async with backend.open() as store:
        assert len((await store.claim(ClaimRequest("dead", 1, ["again", "once"], 10, 30))).runs) == 2
    backend.skew += 31
    async with app:
        with pytest.raises(Refused):
            await off.submit()
        async with asyncio.timeout(10):
            while any((await app.depths()).values()):
                await app.client().news()
    assert sorted(heard) == [("failed", "lost"), ("lost", "lost"), ("refused", "disabled")]


async def test_status_and_stop_are_sound_while_the_engine_starts() -> None:
    opening, go = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[None]:
        opening.set()
        await go.wait()
        yield None

    app = Rota("memory://", resources=slow)
    starting = asyncio.create_task(app.start())
    await opening.wait()
    assert not app.status().running
    assert await app.health()
    stopping = asyncio.create_task(app.stop())
    go.set()
    await starting
    await stopping
    assert not app.status().running


async def test_two_stops_and_a_waiting_portal_call_all_end() -> None:
    app = Rota("memory://")

    @app.task(max_pending=1)
    def work() -> None: ...

    await asyncio.to_thread(work.submit_sync)
    waiting = asyncio.create_task(asyncio.to_thread(work.using(wait=60).submit_sync))
    for _ in range(20):
        await app.client().news(0.01)
    async with asyncio.timeout(10):
        await asyncio.gather(app.stop(), app.stop(), return_exceptions=False)
        with pytest.raises(RuntimeError, match="stopped while"):
            await waiting


async def test_a_shorter_user_of_the_client_does_not_close_it_for_the_longer() -> None:
    app = Rota("memory://")

    @app.task
    async def work() -> None: ...

    async with app.client():
        async with app.client():
            await work.submit()
        await work.submit()
    assert (await app.depths())["work"].queued == 2


async def test_aliases_share_policies_and_a_task_submitted_by_name_keeps_its_own() -> None:
    backend = MemoryBackend()
    here, there = Rota(backend), Rota(backend)
    running = most = 0

    @there.task(key="{host}", limit=Limit(per_key=1), retry=Retry(3), aliases=["fetch"])
    async def visit(host: str, depth: int = 1) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return depth

    async with there:
        handles = [await here.submit("fetch", "a", depth=n) for n in range(5)]
        assert [await handle.result(timeout=10) for handle in handles] == [0, 1, 2, 3, 4]
        seen = await handles[0].refresh()
        assert (seen.key, seen.policy.retry.limit, most) == ("a", 3, 1)
        assert await there.pause("visit")
        waiting = await here.submit("fetch", host="b")
        await (await here.submit("fetch", "c")).cancel()
        assert (await waiting.refresh()).state is State.QUEUED
        await there.resume("visit")
        await waiting.result(timeout=10)
