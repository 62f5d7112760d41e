"""What a simulation leaves of the app and of the caller, and what it refuses."""

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from datetime import UTC, datetime, timedelta

import pytest

from rota import InvalidOptions, Rota, Snooze, UsageError
from rota.testing import Simulation, simulate

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_app_is_left_as_it_was() -> None:
    app = Rota("memory://")

    @app.task
    async def call() -> str:
        return "done"

    async def scenario(_: Simulation) -> None:
        await call.submit()

    assert len(simulate(app, START, START + timedelta(hours=1), scenario=scenario).runs) == 1

    async def really() -> None:
        before = (await app.depths()).values()
        assert not any(before), "nothing of the simulation is in the app's own store"
        async with app:
            assert await (await call.submit()).result(timeout=10) == "done"

    asyncio.run(really())


def test_nothing_of_a_simulation_stays_with_the_app() -> None:
    app = Rota("memory://")

    @app.task
    async def call() -> None:
        await asyncio.sleep(60)

    async def scenario(simulation: Simulation) -> None:
        await call.submit()
        await asyncio.sleep(30)
        simulation.crash()

    left = weakref.ref(simulate(app, START, START + timedelta(hours=1), scenario=scenario))
    gc.collect()
    assert left() is None


HISTORY = """
import asyncio, hashlib, logging, random
from datetime import UTC, datetime, timedelta
from rota import Context, Retry, Rota
from rota.testing import simulate

logging.disable(logging.CRITICAL)
app = Rota("memory://", concurrency=3)

@app.task(retry=Retry(5, delay=30, jitter=0.5))
async def flaky(n: int) -> float:
    await asyncio.sleep(random.random() * 20)
    if random.random() < 0.4:
        raise ValueError(n)
    if random.random() < 0.2:
        await other.submit(n)
    return random.random()

@app.task
def other(n: int) -> int:
    return n

async def scenario(simulation):
    for n in range(40):
        await flaky.submit(n)
        await asyncio.sleep(simulation.random.random() * 10)
        if simulation.random.random() < 0.1:
            simulation.crash()

start = datetime(2026, 1, 1, tzinfo=UTC)
for seed in (1, 1, 2):
    simulation = simulate(app, start, start + timedelta(hours=3), seed=seed, scenario=scenario, workers=2)
    print(hashlib.sha256(repr((simulation.runs, simulation.starts())).encode()).hexdigest())
"""


def test_the_same_seed_gives_the_same_history_in_every_process() -> None:
    histories = [
        subprocess.run(
            [sys.executable, "-c", HISTORY],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for salt in ("1", "2")
    ]
    first, again, other = histories[0]
    assert first == again != other
    assert histories[1] == histories[0]


def test_the_dice_of_the_caller_are_put_back() -> None:
    import random

    random.seed(7)
    expected = [random.random() for _ in range(3)]
    random.seed(7)
    seen = [random.random()]

    app = Rota("memory://")

    @app.task
    async def call() -> None:
        random.random()
        raise Snooze(60)

    async def scenario(_: Simulation) -> None:
        await call.submit()

    simulate(app, START, START + timedelta(hours=1), scenario=scenario)
    assert [*seen, random.random(), random.random()] == expected


@pytest.mark.parametrize("kind", [AssertionError, pytest.fail.Exception])
def test_a_scenario_that_fails_fails_the_simulation(kind: type[BaseException]) -> None:
    async def scenario(_: Simulation) -> None:
        raise kind("as it should not be")

    with pytest.raises(kind, match="as it should not be"):
        simulate(Rota("memory://"), START, START + timedelta(hours=1), scenario=scenario)


@pytest.mark.parametrize(
    ("start", "until", "workers", "words"),
    [
        (datetime(2026, 1, 1), START, 1, "has no time zone"),
        (START, START, 1, "is not after"),
        (START, START + timedelta(1), 0, "at least 1"),
    ],
)
def test_a_simulation_that_makes_no_sense_is_refused(
    start: datetime, until: datetime, workers: int, words: str
) -> None:
    with pytest.raises(InvalidOptions, match=words):
        simulate(Rota("memory://"), start, until, workers=workers)


async def test_inside_an_event_loop_it_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="from a plain function"):
        simulate(Rota("memory://"), START, START + timedelta(hours=1))
