"""Backfills in virtual time: which ticks are run again, and when."""

import asyncio
from datetime import UTC, datetime, timedelta

from rota import Context, DailyAt, Every, Rota
from rota.testing import simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 3, 1, 0, 0, 30, tzinfo=UTC)


def nominals(simulation: Simulation, task: str) -> list[datetime]:
    return [datetime.fromtimestamp(run.origin.nominal or 0, UTC) for run in simulation.of(task)]


def test_a_backfill_of_joined_ticks_repeats_what_did_not_run_and_nothing_else() -> None:
    app = Rota("memory://")
    ran: list[int] = []

    @app.task(schedule=Every(minutes=5), overlap="queue")
    async def slow(ctx: Context) -> None:
        assert ctx.nominal is not None
        ran.append(ctx.nominal.minute)
        if ctx.nominal.minute == 5:
            await asyncio.sleep(21 * 60)

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(29 * 60)
        assert ran == [5, 25]
        await app.schedules.pause("slow")
        for _ in range(2):
            await app.schedules.backfill("slow", START + timedelta(minutes=1), START + timedelta(minutes=26))
            await asyncio.sleep(60)

    simulate(app, START, START + timedelta(minutes=40), scenario=scenario)
    assert ran == [5, 25, 10, 15, 20]


def test_run_now_and_backfill() -> None:
    app = Rota("memory://")
    days: list[str] = []

    @app.task(schedule=DailyAt(6))
    async def report(ctx: Context) -> None:
        assert ctx.nominal is not None
        days.append(f"{ctx.nominal:%m-%d %H:%M}")
        await asyncio.sleep(1)

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(60)
        await (await app.schedules.run_now("report")).result(timeout=60)
        handles = await app.schedules.backfill(
            "report", datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 4, tzinfo=UTC)
        )
        await asyncio.gather(*(handle.result(timeout=60) for handle in handles))
        again = await app.schedules.backfill(
            "report", datetime(2026, 2, 3, tzinfo=UTC), datetime(2026, 2, 5, tzinfo=UTC)
        )
        await asyncio.gather(*(handle.result(timeout=60) for handle in again))

    simulate(app, START, START + timedelta(minutes=10), scenario=scenario)
    assert days == ["03-01 00:01", "02-01 06:00", "02-02 06:00", "02-03 06:00", "02-04 06:00"]


def test_a_backfill_runs_again_what_failed_and_nothing_that_succeeded() -> None:
    app = Rota("memory://")
    broken = True
    seen: list[int] = []

    @app.task(schedule=DailyAt(6))
    async def report(ctx: Context) -> None:
        assert ctx.nominal is not None
        seen.append(ctx.nominal.day)
        if broken and ctx.nominal.day != 2:
            raise RuntimeError("no")

    async def scenario(simulation: Simulation) -> None:
        nonlocal broken
        first, last = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 4, tzinfo=UTC)
        await app.schedules.backfill("report", first, last)
        await asyncio.sleep(10)
        broken = False
        again = await app.schedules.backfill("report", first, last)
        assert [handle.created for handle in again] == [True, False, True]
        await asyncio.sleep(10)

    simulate(app, START, START + timedelta(minutes=1), scenario=scenario)
    assert seen == [1, 2, 3, 1, 3]


def test_a_backfill_waits_for_what_the_schedule_has_unfinished() -> None:
    app = Rota("memory://")
    beside = most = 0

    @app.task(schedule=Every(minutes=10))
    async def slow() -> None:
        nonlocal beside, most
        beside += 1
        most = max(most, beside)
        await asyncio.sleep(60)
        beside -= 1

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(610)
        for _ in range(2):
            await app.schedules.backfill("slow", START - timedelta(minutes=20), START)

    simulate(app, START, START + timedelta(minutes=19), scenario=scenario)
    assert most == 1
