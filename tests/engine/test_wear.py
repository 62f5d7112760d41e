"""A worker that has done enough starts no more runs, lets its runs end, and stops by itself."""

import asyncio

import pytest

from rota import Rota, State
from rota.app.core import core_of
from rota.engine.wear import MIB, Wear, memory_in_use


def test_room_ends_with_the_last_run() -> None:
    wear = Wear(max_runs=3)
    assert (wear.room(10), wear.words()) == (3, None)
    for _ in range(3):
        wear.start(1)
    assert (wear.room(10), wear.words()) == (0, "it has started 3 runs (--max-runs 3)")
    assert Wear().room(10) == 10


def test_memory_counts_after_the_first_run() -> None:
    wear = Wear(max_memory=100 * MIB, memory=lambda: 101 * MIB)
    assert wear.words() is None, "else no run would ever start"
    wear.start(1)
    assert wear.words() == "it uses 101 MiB of memory (--max-memory 100M)"
    assert memory_in_use() > MIB


async def test_a_worn_worker_lets_its_runs_end_and_stops_by_itself() -> None:
    app = Rota("memory://", concurrency=5, grace=0)
    core_of(app).wear = lambda: Wear(max_runs=2)
    full, gate, calls = asyncio.Event(), asyncio.Event(), 0

    @app.task
    async def hold() -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            full.set()
        await gate.wait()

    runs = await app.submit_many([hold.bind() for _ in range(5)])
    await app.start()
    await full.wait()
    engine = core_of(app).engine
    assert not engine.left.is_set(), "two runs are in hand"
    gate.set()
    await asyncio.wait_for(engine.left.wait(), 10)

    states = [(await run.refresh()).state for run in runs]
    assert sorted(states) == [State.QUEUED] * 3 + [State.SUCCEEDED] * 2, (
        "without a grace, and still none was given back"
    )
    assert not app.status().running
    await app.stop()


async def test_a_worker_that_wears_out_is_stopped_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    app = Rota("memory://", concurrency=1)
    core_of(app).wear = lambda: Wear(max_runs=1)
    started = asyncio.Event()

    @app.task
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    with caplog.at_level("INFO", "rota"):
        await app.start()
        run = await endless.submit()
        await started.wait()
        await app.stop(grace=0)
    assert (await run.refresh()).state is State.QUEUED
    assert [m for m in caplog.messages if m.endswith(" stopped")] == [caplog.messages[-1]]
