"""Calls: timeouts, threads, results, and handlers that misbehave."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from rota import Context, InvalidArguments, Rota, RunCancelled, RunFailed, State
from rota.app.core import core_of
from rota.store import WorkerSeen


async def test_a_timed_out_thread_is_settled_at_once_and_keeps_its_seat() -> None:
    app = Rota("memory://", concurrency=1)
    release = threading.Event()

    @app.task(timeout=0.01)
    def hang() -> None:
        release.wait(60)

    @app.task
    def quick() -> str:
        return "done"

    async with app:
        run = await hang.submit()
        with pytest.raises(RunFailed, match="took longer"):
            await run.result(timeout=10)
        waiting = await quick.submit()
        assert core_of(app).engine.overdue == 1
        assert (await waiting.refresh()).state is State.QUEUED, "its only seat is taken"
        release.set()
        assert await waiting.result(timeout=10) == "done"
        assert core_of(app).engine.overdue == 0


async def test_a_coroutine_that_ignores_its_timeout_is_settled_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.runner.CLEANUP", 0.01)
    app = Rota("memory://")
    release = asyncio.Event()

    @app.task(timeout=0.01)
    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with app:
        run = await stubborn.submit()
        with pytest.raises(RunFailed, match="took longer"):
            await run.result(timeout=10)
        release.set()


async def test_a_worker_reports_where_calls_are_that_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.runner.CLEANUP", 0.01)
    app = Rota("memory://")
    release, freed = threading.Event(), asyncio.Event()

    @app.task(timeout=0.01)
    def hang() -> None:
        release.wait(60)

    @app.task(timeout=0.01)
    async def stubborn() -> None:
        while not freed.is_set():
            with suppress(asyncio.CancelledError):
                await freed.wait()

    @app.task
    async def quick() -> None: ...

    async with app:
        runs = [await hang.submit(), await stubborn.submit()]
        for run in runs:
            with pytest.raises(RunFailed, match="took longer"):
                await run.result(timeout=10)
        seen, client = (await app.client().rows(WorkerSeen)).items, app.client()
        while not seen or len(seen[0].report.stalls) < 2:
            await (await quick.submit()).result()
            seen = (await client.rows(WorkerSeen)).items
        release.set()
        freed.set()
    stalls = {stall.run: (stall.what, stall.task, stall.stack) for stall in seen[0].report.stalls}
    first, second = (stalls[run.id] for run in runs)
    assert (first[:2], second[:2]) == (("call", "hang"), ("call", "stubborn"))
    assert first[2].splitlines()[1] == "    release.wait(60)", "it begins with the handler"
    assert second[2].splitlines()[1] == "    await freed.wait()"


async def test_a_timeout_error_of_the_handlers_own_is_a_plain_failure() -> None:
    app = Rota("memory://")

    @app.task(timeout=60)
    async def upstream() -> None:
        raise TimeoutError("upstream was slow")

    async with app:
        run = await upstream.submit()
        with pytest.raises(RunFailed, match="TimeoutError: upstream was slow"):
            await run.result(timeout=10)
    assert (await run.refresh()).reason == "failed"


async def test_a_cancelled_thread_ends_when_it_looks_at_ctx_stopping() -> None:
    app = Rota("memory://")
    started = threading.Event()

    @app.task
    def patient(ctx: Context) -> str:
        started.set()
        pause = threading.Event()
        for _ in range(6000):
            if ctx.stopping:
                return "stopped early"
            pause.wait(0.01)
        return "never told"

    async with app:
        run = await patient.submit()
        await asyncio.to_thread(started.wait, 10)
        await run.cancel()
        with pytest.raises(RunCancelled):
            await run.result(timeout=10)


async def test_a_thread_that_never_looks_finishes_first_and_wins() -> None:
    app = Rota("memory://")
    started, go = threading.Event(), threading.Event()

    @app.task
    def deaf() -> str:
        started.set()
        go.wait(60)
        return "done"

    async with app:
        run = await deaf.submit()
        await asyncio.to_thread(started.wait, 10)
        assert await run.cancel()
        go.set()
        assert await run.result(timeout=10) == "done"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
async def test_an_exception_meant_for_the_process_is_one_runs_failure(stop: type[BaseException]) -> None:
    app = Rota("memory://")

    @app.task
    async def rude() -> None:
        raise stop

    @app.task
    def rude_thread() -> None:
        raise stop

    @app.task
    async def polite() -> str:
        return "alive"

    async with app:
        for task in (rude, rude_thread):
            run = await task.submit()
            with pytest.raises(RunFailed, match=stop.__name__):
                await run.result(timeout=10)
        assert await (await polite.submit()).result(timeout=10) == "alive"


async def test_a_result_that_cannot_be_kept_fails_without_a_retry() -> None:
    app = Rota("memory://")

    @app.task
    async def lock() -> object:
        return threading.Lock()

    @app.task
    async def huge() -> str:
        return "x" * 1_100_000

    async with app:
        for task, why in ((lock, "cannot be stored"), (huge, "more than 1,048,576")):
            run = await task.submit()
            with pytest.raises(RunFailed, match=why):
                await run.result(timeout=10)
            assert (await run.refresh()).reason == "bad_result"


async def test_an_error_whose_text_is_broken_still_fails_the_run() -> None:
    app = Rota("memory://")

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text for you")

    @app.task
    async def fail() -> None:
        raise Broken

    async with app:
        with pytest.raises(RunFailed, match="could not be read"):
            await (await fail.submit()).result(timeout=10)


async def test_an_error_with_unstorable_text_fails_its_own_run_only(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db")

    @app.task
    async def fail() -> None:
        raise ValueError("half a pair: \ud800")

    @app.task
    async def fine() -> str:
        return "fine"

    async with app:
        bad, good = await app.submit_many([fail.bind(), fine.bind()])
        with pytest.raises(RunFailed, match="half a pair"):
            await bad.result(timeout=10)
        assert await good.result(timeout=10) == "fine"


def deep(levels: int) -> list[object]:
    value: list[object] = [None]
    for _ in range(levels):
        value = [value]
    return value


async def test_a_value_nested_too_deeply_is_refused_on_every_way_in_and_out() -> None:
    app = Rota("memory://")

    @app.task
    async def take(value: list[object]) -> None: ...

    @app.task
    async def give() -> object:
        return deep(900)

    @app.task
    async def save(ctx: Context) -> str:
        with pytest.raises(ValueError, match="nested too deeply"):
            ctx.checkpoint(deep(900))
        ctx.checkpoint(deep(100))
        return "saved"

    async with app:
        for refused in (take.submit(deep(900)), app.submit("elsewhere", value=deep(900))):
            with pytest.raises(InvalidArguments, match="nested too deeply"):
                await refused
        with pytest.raises(RunFailed, match="nested too deeply"):
            await (await give.submit()).result(timeout=10)
        assert await (await save.submit()).result(timeout=10) == "saved"
