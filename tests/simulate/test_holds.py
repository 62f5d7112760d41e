"""What keeps runs from starting holds in virtual time too: freezes, paused keys and limits over several tasks."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from rota import Limit, Rota
from rota.testing import Simulation, simulate

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_freeze_and_the_pause_of_a_key_end_by_the_virtual_clock() -> None:
    app = Rota("memory://")

    @app.task(key="{n}")
    async def work(n: int) -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await app.pause("work", key="2")
        await app.freeze(until=START + timedelta(minutes=10), note="deploy")
        for n in (1, 2):
            await work.submit(n)
        await asyncio.sleep(1800)
        await app.resume("work", key="2")

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert [start - START for start in simulation.starts(work)] == [timedelta(minutes=10), timedelta(minutes=30)]


def test_a_named_limit_lets_one_run_of_several_tasks_start_at_a_time() -> None:
    app = Rota("memory://")

    @app.task(limit=Limit(1, name="gpu"))
    async def train(n: int) -> None:
        await asyncio.sleep(60)

    @app.task(limit=Limit(1, name="gpu"))
    async def paint(n: int) -> None:
        await asyncio.sleep(60)

    async def scenario(simulation: Simulation) -> None:
        await app.submit_many([task.bind(n) for n in range(2) for task in (train, paint)])

    simulation = simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    starts = sorted([*simulation.starts(train), *simulation.starts(paint)])
    assert [later - sooner for sooner, later in pairwise(starts)] == [timedelta(seconds=60)] * 3
