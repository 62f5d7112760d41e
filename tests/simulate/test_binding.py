"""bound_to: an app lives in another store for a while."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import Rota, State, UsageError
from rota.testing import Simulation, drain, simulate


def portals() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rota-portal"]


async def test_a_bound_app_submits_and_runs_there_and_its_own_store_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "own.db"
    app = Rota(f"sqlite:///{file}")

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    with app.bound_to("memory://"):
        run = await greet.submit("Ada")
        await drain(app)
        assert (await run.refresh()).state is State.SUCCEEDED
    assert not file.exists()
    await greet.submit("Bob")
    assert (await app.depths())["greet"].queued == 1
    await app.stop()


def test_the_portal_of_a_bound_app_ends_with_the_block() -> None:
    app = Rota("memory://")

    @app.task
    async def greet(name: str) -> None: ...

    before = portals()
    with app.bound_to("memory://"):
        greet.submit_sync("Ada")
        assert len(portals()) == len(before) + 1
    assert portals() == before


async def test_a_running_app_cannot_be_bound_elsewhere() -> None:
    async with Rota("memory://") as app:
        with pytest.raises(UsageError, match="the engine is running"), app.bound_to("memory://"):
            pass


def test_a_block_that_opens_and_closes_a_client_leaves_the_simulated_store_open(tmp_path: Path) -> None:
    """Every request to a FastAPI app that no server serves is such a block."""
    file = tmp_path / "own.db"
    app = Rota(f"sqlite:///{file}")

    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    async def playing(simulation: Simulation) -> None:
        for name in ("Ada", "Bob"):
            async with app.client():
                await greet.submit(name)

    start = datetime(2026, 5, 4, tzinfo=UTC)
    simulation = simulate(app, start, start + timedelta(hours=1), scenario=playing)
    assert [run.state for run in simulation.of(greet)] == [State.SUCCEEDED] * 2
    assert not file.exists()
