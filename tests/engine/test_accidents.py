"""Accidents: whatever a handler, its types or the store do, the seat is free again and the waiter hears of it."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rota import Retry, Rota, RunCancelled, RunFailed, StoreCorrupt, StoreUnavailable, Unstorable
from rota.app.core import core_of
from rota.stores.memory import MemoryBackend
from storekit.faults import FaultyBackend


class Odd:
    """Looks like a pydantic model, and breaks."""

    def model_dump(self, mode: str) -> object:
        raise KeyError("gone")


async def test_a_type_that_raises_while_it_is_read_or_written_costs_no_seat() -> None:
    app = Rota("memory://", concurrency=1)
    reading = False

    @dataclass
    class Config:
        path: str

        def __post_init__(self) -> None:
            if reading:
                raise FileNotFoundError(self.path)

    @app.task
    async def use(config: Config) -> None: ...

    @app.task
    async def odd() -> object:
        return Odd()

    @app.task
    async def fine() -> str:
        return "fine"

    async with app:
        await use.submit(Config("/nowhere"))
        reading = True
        run = await odd.submit()
        with pytest.raises(RunFailed, match="cannot be stored"):
            await run.result(timeout=10)
        assert await (await fine.submit()).result(timeout=10) == "fine"


async def test_sys_exit_in_a_handler_with_a_timeout_is_its_own_failure_only() -> None:
    app = Rota("memory://")

    @app.task(timeout=30)
    async def leave() -> None:
        sys.exit(3)

    @app.task
    async def fine() -> str:
        return "fine"

    async with app:
        run = await leave.submit()
        with pytest.raises(RunFailed, match="SystemExit"):
            await run.result(timeout=10)
        assert await (await fine.submit()).result(timeout=10) == "fine"


async def test_a_handler_that_ignores_a_cancel_is_settled_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.engine.runner.PATIENCE", 0.01)
    app = Rota("memory://")
    started, release = asyncio.Event(), asyncio.Event()

    @app.task(timeout=30)
    async def stubborn() -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with app:
        run = await stubborn.submit()
        await started.wait()
        await run.cancel()
        with pytest.raises(RunCancelled):
            await run.result(timeout=10)
        assert core_of(app).engine.overdue == 1, "it still takes a seat, and is shown"
        release.set()


async def test_an_ending_that_cannot_be_written_does_not_hold_up_the_others() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    handles = await app.submit_many([double.bind(n) for n in range(3)])
    backend.fail("settle", Unstorable("not this batch"))  # then the first of the batch alone
    backend.fail("settle", Unstorable("not this one"))
    async with app:
        with pytest.raises(RunFailed, match="cannot be written"):
            await handles[0].result(timeout=10)
        assert [await handle.result(timeout=10) for handle in handles[1:]] == [2, 4]


@pytest.mark.parametrize(
    "error", [ValueError("of a driver"), RuntimeError("a bug"), StoreCorrupt("odd"), OSError(5, "")]
)
async def test_no_error_but_a_proven_bad_value_changes_what_is_recorded(error: Exception) -> None:
    """The handler has returned: whatever the store raises, the run is recorded as it ended, once the store answers."""
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    handles = await app.submit_many([double.bind(n) for n in range(3)])
    backend.fail("settle", error, times=5)  # the batch, each of it alone, and one of them once more
    async with app:
        assert [await handle.result(timeout=10) for handle in handles] == [0, 2, 4]
    assert {(await handle.refresh()).fence for handle in handles} == {1}, "none of them was run again"


async def test_an_ending_that_cannot_be_recorded_holds_up_no_other_ending() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend, concurrency=1)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    first, second = await app.submit_many([double.bind(n) for n in range(2)])
    backend.fail("settle", RuntimeError("a bug"), times=2)  # as a batch of one, and alone
    async with app:
        assert await second.result(timeout=10) == 2
        assert await first.result(timeout=10) == 0


async def test_waiting_again_and_again_never_hangs() -> None:
    """A watcher that retires must not swallow the next who waits."""
    app = Rota("memory://")

    @app.task
    async def quick() -> str:
        return "done"

    async with app:
        for ticks in range(20):
            run = await quick.submit()
            assert await run.result(timeout=10) == "done"
            for _ in range(ticks):
                await asyncio.sleep(0)


async def test_closing_the_app_wakes_whoever_waits() -> None:
    app = Rota("memory://")

    @app.task
    async def never() -> None: ...

    run = await never.using(delay=3600).submit()
    waiting = asyncio.create_task(run.result())
    for _ in range(10):
        await asyncio.sleep(0)
    await app.stop()
    with pytest.raises(StoreUnavailable, match="closed"):
        await waiting


async def test_a_store_that_cannot_be_read_wakes_whoever_waits() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def never() -> None: ...

    run = await never.using(delay=3600).submit()
    backend.fail("runs", StoreCorrupt("rubbish"))
    with pytest.raises(StoreCorrupt):
        await run.result(timeout=10)
    await app.stop()


async def test_an_error_about_one_awaited_run_reaches_only_whoever_waits_for_it() -> None:
    """All who wait share one read: an error that may be about any of them is pinned down."""
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    handles = [await double.using(delay=3600).submit(n) for n in range(4)]
    waiting = [asyncio.create_task(handle.result(timeout=10)) for handle in handles]
    backend.fail("runs", ValueError("of a driver"), times=3)  # all four, the first two, the first
    (ended,), _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
    assert ended is waiting[0]
    with pytest.raises(ValueError, match="of a driver"):
        await ended
    backend.skew += 3600
    async with app:
        assert await asyncio.gather(*waiting[1:]) == [2, 4, 6]


@pytest.mark.parametrize("error", [RuntimeError("of a driver"), StoreCorrupt("odd")])
async def test_results_of_steps_that_cannot_be_read_are_no_failure_of_the_next_step(error: Exception) -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)
    called = asyncio.Event()

    @app.task
    async def first() -> int:
        backend.fail("runs", error, times=2)  # the next step asks for this result; nobody else reads
        return 2

    @app.task
    async def second(first: int) -> int:
        called.set()
        return 10 * first

    chain = await (first >> second).submit()
    async with app:
        async with asyncio.timeout(10):
            await called.wait()
        assert await chain.result(timeout=10) == 20
    run = await chain.steps["second"].refresh()
    assert (run.failures, run.fence) == (0, 3), "given back twice, and charged with nothing"


async def test_a_watcher_that_cannot_listen_for_a_moment_goes_on() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def quick() -> str:
        return "done"

    async with app:
        backend.fail("changes", StoreUnavailable("away"))
        assert await (await quick.submit()).result(timeout=10) == "done"


async def test_a_worker_does_not_take_its_own_live_runs_for_lost() -> None:
    """After a freeze the claim may come before the heart: the lease has lapsed, but its holder is here."""
    backend = MemoryBackend()
    app = Rota(backend, lease=10)
    started, go = asyncio.Event(), asyncio.Event()

    @app.task(lost="fail")
    async def slow() -> str:
        started.set()
        await go.wait()
        return "done"

    @app.task
    async def nudge() -> None: ...

    async with app:
        run = await slow.submit()
        await started.wait()
        backend.skew += 11
        await (await nudge.submit()).result(timeout=10)
        go.set()
        assert await run.result(timeout=10) == "done"
        assert (await run.refresh()).losses == 0


async def test_a_chdir_does_not_lead_to_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = Rota("sqlite:///queue/rota.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    @app.task
    async def quick() -> None: ...

    await quick.submit()
    await app.stop()
    assert (tmp_path / "queue" / "rota.db").exists()
    assert os.listdir(tmp_path / "elsewhere") == []


@pytest.mark.parametrize("name", ["a#b", "a%41b", "a?b", "a b"])
async def test_any_folder_name_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ROTA_URL", raising=False)
    app = Rota()

    @app.task
    async def quick() -> None: ...

    await quick.submit()
    await app.stop()
    assert (folder / ".rota" / "rota.db").exists()


def test_common_slips_get_a_sentence() -> None:
    app = Rota("memory://")
    slips: list[tuple[dict[str, Any], str]] = [
        ({"retry": 5}, r"write retry=Retry\(5\)"),
        ({"timeout": "30"}, "timeout='30'"),
        ({"max_losses": 0}, "max_losses=0"),
    ]
    for options, sentence in slips:
        with pytest.raises(ValueError, match=sentence):
            app.task(**options)(lambda: None)
    with pytest.raises(ValueError, match=r"write Retry\(0\)"):
        Retry(1, rules={ValueError: 0})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="lease='30'"):
        Rota("memory://", lease="30")  # type: ignore[arg-type]
