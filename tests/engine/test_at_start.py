"""AtStart: a schedule that fires when the first worker starts, or once for each version of the app, on every store."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from rota import AtStart, DailyAt, InvalidOptions, Rota, State
from rota.app.core import core_of
from rota.client.client import Client
from rota.domain.deadline import deadline_trigger
from rota.domain.schedule import Schedule
from rota.domain.starts import is_first
from rota.schedules.starting import declare_start
from rota.store import Backend, Declared, Reply, RowQuery, RunQuery
from rota.testing import Simulation, simulate

START = datetime(2026, 3, 1, tzinfo=UTC)


def warming(backend: Backend) -> Rota:
    app = Rota(backend, name="shop")

    @app.task(schedule=AtStart())
    async def warm() -> None: ...

    return app


async def runs_of(app: Rota, task: str) -> list[State]:
    """Wait for the ends of the runs of `task`, and return their states."""
    found = (await app.client().runs(RunQuery(task=task))).runs
    return [(await app.client().ended(run.id, 30)).state for run in found]


async def test_the_first_worker_fires_and_the_next_ones_do_not(backend: Backend) -> None:
    first, second = warming(backend), warming(backend)
    async with first:
        while not await runs_of(first, "warm"):
            await first.client().news(1)
        async with second:
            pass
        assert await runs_of(first, "warm") == [State.SUCCEEDED]
    async with second:  # all workers have stopped
        while len(await runs_of(second, "warm")) < 2:
            await second.client().news(1)
        schedule = await second.schedules.get("warm")
    assert not schedule.ended
    assert schedule.next is None


async def test_of_many_workers_that_start_at_once_one_fires(backend: Backend) -> None:
    apps = [warming(backend) for _ in range(6)]
    await asyncio.gather(*(app.start() for app in apps))
    try:
        while not (found := await runs_of(apps[0], "warm")):
            await apps[0].client().news(1)
        assert found == [State.SUCCEEDED]
        ticks = await apps[0].schedules.ticks("warm")
        assert len(ticks) == 1
    finally:
        await asyncio.gather(*(app.stop() for app in apps))


async def test_a_worker_that_dies_before_its_first_claim_has_started(backend: Backend) -> None:
    """Its tick is in the store, so the next worker fires it, and no second one."""
    app = warming(backend)
    async with app.client():
        for _ in range(3):
            await core_of(app).declare_schedules()
            await core_of(app).begin_schedules()
    async with app:
        while not await runs_of(app, "warm"):
            await app.client().news(1)
        assert len(await app.schedules.ticks("warm")) == 1


async def test_a_worker_that_read_before_a_start_does_not_take_the_start_back(backend: Backend) -> None:
    app = warming(backend)
    async with app.client() as client:
        await core_of(app).declare_schedules()
        before = await client.rows(Schedule, RowQuery(names=["warm"]))
        await core_of(app).begin_schedules()
        started = await app.schedules.get("warm")
        (declared,) = core_of(app).registry.declared()
        assert await declare_start(cast("Client", Behind(client, before)), declared) is Declared.UNCHANGED
        assert await app.schedules.get("warm") == started
        assert started.next_at is not None


class Behind:
    """A client whose first read of the schedules is older than what the store has."""

    def __init__(self, client: Client, before: Reply[Schedule]) -> None:
        self._client = client
        self._replies = [before]
        self.declare = client.declare

    async def rows(self, kind: type[Schedule], query: RowQuery) -> Reply[Schedule]:
        return self._replies.pop() if self._replies else await self._client.rows(kind, query)


async def test_each_version_fires_once(backend: Backend) -> None:
    done: list[str] = []

    async def start(version: str) -> None:
        app = Rota(backend, name="shop", version=version)

        @app.task(schedule=AtStart(each="version"))
        async def migrate() -> None:
            done.append(version)

        async with app:
            while (await app.schedules.get("migrate")).next_at is not None:
                await app.client().news(1)
            await runs_of(app, "migrate")

    for version in ("1", "1", "2", "2", "1", "3"):
        await start(version)
    assert done == ["1", "2", "3"]


def test_a_crash_is_a_start_only_if_no_other_worker_lives() -> None:
    app = Rota("memory://")
    at: list[float] = []

    @app.task(schedule=AtStart())
    async def warm() -> None:
        at.append(simulation_now())

    def simulation_now() -> float:
        return asyncio.get_running_loop().time()

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(3600)
        simulation.crash(restart=60)  # the other worker lives
        await asyncio.sleep(3600)
        assert len(at) == 1
        for worker in ("worker-2", "worker-3"):
            simulation.crash(worker, restart=600)

    simulate(app, START, START + timedelta(hours=4), workers=2, scenario=scenario)
    assert len(at) == 2


def test_a_start_that_was_not_seen_to_claim_counts_as_alive_for_a_while() -> None:
    def schedule(start: float | None) -> Schedule:
        return Schedule(id="warm", trigger="at start", task="warm", body="{}", key="", start=start)

    assert is_first(schedule(None), 100.0, False, [], 30.0)
    assert not is_first(schedule(None), 100.0, True, [], 30.0)
    assert not is_first(schedule(99.0), 100.0, False, [98.0], 30.0), "another worker is about to claim"
    assert is_first(schedule(99.0), 100.0, False, [99.5], 30.0), "that worker has claimed and stopped"
    assert is_first(schedule(69.0), 100.0, False, [], 30.0), "that worker never claimed"


@pytest.mark.parametrize("each", ["start", "version"])
def test_the_text_is_read_back(each: str) -> None:
    trigger = AtStart(each=each, jitter=30)  # type: ignore[arg-type]
    assert AtStart.parse(str(trigger)) == trigger
    assert trigger.next_after(START) is None


async def test_wrong_uses_say_what_to_do() -> None:
    app = Rota("memory://")

    @app.task
    async def warm() -> None: ...

    with pytest.raises(ValueError, match="two schedules"):
        AtStart().__or__(DailyAt(3))
    with pytest.raises(ValueError, match='each="version"'):
        AtStart(each="deploy")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptions, match="declare it in code"):
        await app.schedules.put("warm", AtStart(), warm.bind())

    with pytest.raises(ValueError, match="names no time"):
        deadline_trigger(AtStart())

    with pytest.raises(InvalidOptions, match="ROTA_VERSION"):

        @app.task(schedule=AtStart(each="version"))
        async def migrate() -> None: ...
