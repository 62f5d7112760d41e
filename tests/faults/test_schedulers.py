"""Any number of schedulers and no leader: every tick makes one run, whoever dies."""

import asyncio
import itertools
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from rota import Every, Rota, Run, State
from rota.domain.ticks import tick_id
from rota.store import RunQuery, Store
from tests.faults.schedulers import define
from tests.processes import Process
from tests.requirement import requirement

SCHEDULES = [f"every-second-{i}" for i in range(200)]
SCHEDULERS = 5
KILL_EVERY = 3
PATIENCE = 120.0


@requirement("1.10")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("store_url", "seconds"),
    [
        ("sqlite", 10),
        ("valkey-9", 10),
        pytest.param("postgres-18", 10, marks=pytest.mark.soak),
        pytest.param("sqlite", 60, marks=pytest.mark.soak),
        pytest.param("valkey-9", 60, marks=pytest.mark.soak),
        pytest.param("postgres-18", 60, marks=pytest.mark.soak),
    ],
    indirect=["store_url"],
)
async def test_five_schedulers_one_killed_every_few_seconds_one_run_per_tick(store_url: str, seconds: int) -> None:
    app = Rota(store_url)
    tasks = itertools.cycle(define(app))
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    ticks = [start + timedelta(seconds=i) for i in range(seconds)]
    async with app.client():
        every_second = [(name, Every(1, anchor=start), next(tasks).bind()) for name in SCHEDULES]
        await app.schedules.put_many(every_second, overlap="allow", catch_up="all", start=start, end=ticks[-1])
        with ExitStack() as processes:
            schedulers = [processes.enter_context(scheduler(store_url)) for _ in range(SCHEDULERS)]
            dice = random.Random(seconds)
            for tick in ticks[::KILL_EVERY]:
                await until(app, lambda: passed(app, tick))  # noqa: B023 - awaited before the next
                schedulers.pop(dice.randrange(SCHEDULERS)).signal(signal.SIGKILL)
                schedulers.append(processes.enter_context(scheduler(store_url)))
            await until(app, lambda: ended(app))
            runs = await all_runs(await app.client().store())
            history = await app.schedules.list()

    expected = {tick_id(name, tick.timestamp()) for name in SCHEDULES for tick in ticks}
    assert len(runs) == len(expected) == 200 * seconds, "one run per tick, none missed"
    assert {run.id for run in runs} == expected
    assert {run.state for run in runs} == {State.SUCCEEDED}
    assert all(schedule.next_at is None for schedule in history)


def scheduler(url: str) -> Process:
    env = {"ROTA_URL": url, "ROTA_LEASE": "3", "ROTA_CONCURRENCY": "20"}
    return Process("-m", "rota", "worker", "-A", "tests.faults.schedulers:app", env=env)


async def until(app: Rota, reached: Callable[[], Awaitable[bool]]) -> None:
    """Looks whenever something may have changed."""
    async with asyncio.timeout(PATIENCE):
        while not await reached():
            await app.client().news(0.5)


async def passed(app: Rota, tick: datetime) -> bool:
    """Has the first schedule fired for this tick?"""
    next_at = (await app.schedules.get(SCHEDULES[0])).next_at
    return next_at is None or next_at > tick.timestamp()


async def ended(app: Rota) -> bool:
    fired = all(schedule.next_at is None for schedule in await app.schedules.list())
    return fired and not any((await app.depths()).values())


async def all_runs(store: Store) -> list[Run]:
    found: list[Run] = []
    cursor: str | None = None
    while True:
        page = await store.runs(RunQuery(limit=1000, cursor=cursor))
        found += page.runs
        cursor = page.cursor
        if cursor is None:
            return found
