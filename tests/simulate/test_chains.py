"""Chains: flows made on the spot."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rota import (
    Rota,
    RunFailed,
)
from rota.testing import simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 11, 15, 3, 0, tzinfo=ZoneInfo("Europe/Paris"))
DAY = "2026-11-15"


def played(app: Rota, hours: float, scenario: Callable[[Simulation], Awaitable[object]] | None = None) -> Simulation:
    return simulate(app, START, START + timedelta(hours=hours), scenario=scenario)


def test_a_chain_is_a_flow_of_its_own() -> None:
    app, got = Rota("memory://"), list[str]()

    @app.task
    async def a(n: int) -> int:
        return n + 1

    @app.task
    async def b(a: int) -> int:
        return a * 10

    @app.task
    async def c(b: int) -> str:
        return f"c{b}"

    @app.task
    async def d() -> str:
        got.append("d")
        return "d"

    async def chains(simulation: Simulation) -> None:
        handle = await (a.bind(1) >> b >> [c, d]).submit()
        assert list(handle.steps) == ["a", "b", "c", "d"]
        assert await handle.result() == ["c20", "d"]
        assert await (await (a.bind(2) >> b).submit()).result() == 30
        assert await (await (d >> [d, d] >> d).submit()).result() == "d"

    played(app, 1, chains)
    assert len(got) == 5


def test_a_chain_whose_step_fails_says_so_at_once() -> None:
    app, got = Rota("memory://"), list[str]()

    @app.task
    async def bad() -> None:
        raise ValueError("no")

    @app.task
    async def after() -> None:
        got.append("after")

    async def chains(simulation: Simulation) -> None:
        handle = await (bad >> after).submit()
        with pytest.raises(RunFailed, match="no"):
            await handle.result()
        assert await handle.cancel() == 1

    played(app, 1, chains)
    assert got == []
