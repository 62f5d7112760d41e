"""Crashes in virtual time: a worker is cut off in the middle, and the run is rescued."""

import asyncio
import gc
from datetime import UTC, datetime, timedelta

import pytest

from rota import Context, Rota, State, UsageError
from rota.store import ClaimRequest
from rota.testing import Simulation, simulate
from rota.testing.virtual_store import VirtualBackend
from storekit.contract import new_run

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = START + timedelta(hours=1)


def test_a_crashed_workers_run_is_rescued_after_its_lease() -> None:
    app = Rota("memory://", lease=30)
    did: list[str] = []

    @app.task
    async def work(ctx: Context) -> None:
        did.append(f"begun by {ctx.run.worker}")
        try:
            await asyncio.sleep(20)
        finally:
            did.append(f"left by {ctx.run.worker}")

    async def scenario(simulation: Simulation) -> None:
        await work.submit()
        await asyncio.sleep(5)
        assert simulation.crash() == "worker-1"
        await asyncio.sleep(20)  # its timer is over
        gc.collect()

    simulation = simulate(app, START, HOUR, scenario=scenario)
    (run,) = simulation.runs
    assert (run.state, run.losses, run.fence) == (State.SUCCEEDED, 1, 2)
    assert did == ["begun by worker-1", "begun by worker-2", "left by worker-2"], "nothing more of worker-1 runs"
    first, second = simulation.starts(work)
    assert timedelta(seconds=30) <= second - first <= timedelta(seconds=40), "a lease, and a look every 5 s"


def test_a_worker_that_slept_takes_over_and_none_is_started_anew() -> None:
    app = Rota("memory://", lease=30)

    @app.task
    async def work(ctx: Context) -> str | None:
        await asyncio.sleep(20)
        return ctx.run.worker

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(600)
        await work.submit()
        await asyncio.sleep(5)
        simulation.crash(restart=None)
        assert len(simulation.workers) == 1

    simulation = simulate(app, START, HOUR, scenario=scenario, workers=2)
    (run,) = simulation.runs
    assert (run.state, run.losses) == (State.SUCCEEDED, 1)
    assert len(simulation.starts()) == 2


def test_a_handler_is_renewed_for_hours_and_called_once() -> None:
    app = Rota("memory://", lease=30)

    @app.task
    async def long() -> None:
        await asyncio.sleep(3 * 3600)

    async def scenario(_: Simulation) -> None:
        await long.submit()

    simulation = simulate(app, START, START + timedelta(hours=4), scenario=scenario, workers=2)
    (run,) = simulation.runs
    assert (run.state, run.losses, len(simulation.starts(long))) == (State.SUCCEEDED, 0, 1)


async def test_when_a_worker_has_no_seat_left_the_idle_ones_look_for_themselves() -> None:
    """It may have been the one that was to wake for the next run, and the others do not poll."""
    backend = VirtualBackend(lambda: 1000.0, pause=5)
    async with backend.open() as store, store.changes() as hints:
        await store.put([new_run(id="now"), new_run(id="later", delay=60)])
        assert (await store.claim(ClaimRequest("ada", 1, ["other"], 1, 30))).wake is None
        assert [run.id for run in (await store.claim(ClaimRequest("bob", 1, ["greet"], 1, 30))).runs] == ["now"]
        async with asyncio.timeout(10):
            assert (await anext(hints)).workers == {"ada"}
        assert (await store.claim(ClaimRequest("bob", 2, ["greet"], 0, 30))).wake == 5, "who has no seat left polls"
        assert (await store.claim(ClaimRequest("ada", 2, ["greet"], 1, 30))).wake == 60


def test_a_crash_inside_a_handler_records_nothing_of_it() -> None:
    app = Rota("memory://")
    simulations: list[Simulation] = []

    @app.task(max_losses=3)
    async def killer() -> str:
        simulations[0].crash()
        return "never told"

    async def scenario(simulation: Simulation) -> None:
        simulations.append(simulation)
        await killer.submit()

    simulation = simulate(app, START, HOUR, scenario=scenario)
    (run,) = simulation.runs
    assert (run.state, run.reason, run.losses, run.result) == (State.FAILED, "poison", 3, None)
    assert len(simulation.starts(killer)) == 3


def test_idle_workers_may_crash_and_what_they_would_have_woken_for_is_done() -> None:
    app = Rota("memory://")

    @app.task
    async def work() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await work.using(delay=1800).submit()
        await asyncio.sleep(600)
        for name in simulation.workers[:2]:
            simulation.crash(name, restart=None)

    simulation = simulate(app, START, HOUR, scenario=scenario, workers=3)
    assert simulation.starts(work) == [START + timedelta(seconds=1800)]


def test_without_any_worker_runs_wait_until_one_starts_again() -> None:
    app = Rota("memory://")

    @app.task
    async def work() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        simulation.crash(restart=900)
        assert simulation.workers == []
        with pytest.raises(UsageError, match="no worker"):
            simulation.crash()
        await work.submit()

    simulation = simulate(app, START, HOUR, scenario=scenario)
    assert simulation.starts(work) == [START + timedelta(seconds=900)]
    assert simulation.workers == ["worker-2"]
    with pytest.raises(UsageError, match="is over"):
        simulation.crash()


def test_a_result_is_awaited_beyond_the_crash_of_the_worker_that_also_awaits_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = Rota("memory://", lease=30)

    @app.task
    async def inner() -> str:
        return "done"

    @app.task(timeout=7200)
    async def outer(id: str) -> str:
        return await inner.handle(id).result()

    async def scenario(simulation: Simulation) -> None:
        run = await outer.submit((await inner.using(delay=600).submit()).id)
        await asyncio.sleep(60)
        simulation.crash()
        assert await run.result() == "done"

    simulation = simulate(app, START, START + timedelta(hours=3), scenario=scenario)
    assert len(simulation.starts(outer)) == 2
    assert {run.state for run in simulation.runs} == {State.SUCCEEDED}
    caplog.clear()
    del simulation
    gc.collect()
    assert caplog.text == "", "what was cut off goes quietly"


def test_a_worker_that_stops_holds_its_runs_for_ten_seconds_only_and_renews_them() -> None:
    """Whoever stops it may kill it at any moment: its runs then wait ten seconds for another worker, not thirty."""
    app = Rota("memory://", lease=30, grace=600)
    left: list[float] = []

    @app.task
    async def work() -> None:
        await asyncio.sleep(60)

    async def scenario(simulation: Simulation) -> None:
        await work.submit()
        await asyncio.sleep(5)
        left.append((simulation.of(work)[0].until or 0.0) - simulation.now.timestamp())
        await app.workers.stop("worker-1")
        await asyncio.sleep(29)
        left.append((simulation.of(work)[0].until or 0.0) - simulation.now.timestamp())

    simulation = simulate(app, START, HOUR, scenario=scenario)
    (run,) = simulation.runs
    assert (run.state, run.losses, run.fence) == (State.SUCCEEDED, 0, 1)
    assert left[0] > 15
    assert 5 < left[1] <= 10
