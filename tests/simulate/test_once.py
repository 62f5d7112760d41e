"""Once per period, in virtual time: one name is the key, the mark and the refusal."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rota import Context, DailyAt, Every, InvalidOptions, Period, Reason, Refused, Rota, State, TaskError
from rota.domain.period import Unit
from rota.store import MarkRow, RowQuery
from rota.testing import simulate
from rota.testing.simulation import Simulation

PARIS = ZoneInfo("Europe/Paris")
START = datetime(2026, 11, 15, 12, 0, tzinfo=PARIS)


async def marks(app: Rota, task: str) -> list[str]:
    store = await app.client().store()
    return [row.key for row in (await store.rows(MarkRow, RowQuery(task=task))).items]


def test_a_task_is_done_once_a_day() -> None:
    app, days = Rota("memory://", tz="Europe/Paris"), list[str | None]()

    @app.task(once=Period.day())
    async def today(ctx: Context) -> None:
        days.append(ctx.period)
        await asyncio.sleep(10)

    async def asks(simulation: Simulation) -> None:
        first = await today.submit()
        assert not (await today.submit()).created, "one waits already"
        await asyncio.sleep(5)
        with pytest.raises(Refused) as running:
            await today.submit()
        assert running.value.decision.reason is Reason.ALREADY_RUNNING
        await first.result()
        with pytest.raises(Refused) as done:
            await today.submit()
        assert done.value.decision.reason is Reason.ALREADY_DONE
        assert await marks(app, "today") == ["2026-11-15"]
        await asyncio.sleep(12 * 3600)
        await today.submit()

    simulate(app, START, START + timedelta(hours=13), scenario=asks)
    assert days == ["2026-11-15", "2026-11-16"]


def test_a_failed_one_may_run_again_and_a_skipped_one_too() -> None:
    app, tries = Rota("memory://"), list[int]()

    @app.task(once=Period.day())
    async def shaky() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError
        if len(tries) == 2:
            raise TaskError("skipped", "not yet")

    async def asks(simulation: Simulation) -> None:
        for _ in range(3):
            await shaky.submit()
            await asyncio.sleep(1)
        with pytest.raises(Refused, match="already_done"):
            await shaky.submit()

    simulate(app, START, START + timedelta(hours=1), scenario=asks)
    assert len(tries) == 3


def test_each_key_is_done_once() -> None:
    app, done = Rota("memory://"), list[str]()

    @app.task(once=Period.day(), key="{user}")
    async def digest(user: str) -> None:
        done.append(user)

    @app.task(once=Period.day())
    async def plain(n: int) -> None:
        done.append(str(n))

    async def asks(simulation: Simulation) -> None:
        for user in ("ada", "bob", "ada"):
            handles = await app.submit_many([digest.bind(user)])
            await asyncio.sleep(1)
        assert [bool(handle) for handle in handles] == [False]
        assert await marks(app, "digest") == ["ada@2026-11-15", "bob@2026-11-15"]
        for n in (1, 2):
            await plain.submit(n)
            await asyncio.sleep(1)
            with pytest.raises(Refused):
                await plain.submit(n)

    simulate(app, START, START + timedelta(hours=1), scenario=asks)
    assert done == ["ada", "bob", "1", "2"]


def test_what_is_the_default_anyway_need_not_be_said() -> None:
    app, done = Rota("memory://"), list[int]()

    @app.task(once=Period.day())
    async def invoice(month: int = 1) -> None:
        done.append(month)

    async def asks(simulation: Simulation) -> None:
        await invoice.submit()
        await asyncio.sleep(1)
        with pytest.raises(Refused, match="already_done"):
            await invoice.submit(1)
        await invoice.submit(2)

    simulate(app, START, START + timedelta(hours=1), scenario=asks)
    assert done == [1, 2]


def test_the_period_is_that_of_the_due_time() -> None:
    app, days = Rota("memory://", tz="Europe/Paris"), list[str | None]()

    @app.task(once=Period.day())
    async def today(ctx: Context) -> None:
        days.append(ctx.period)

    async def asks(simulation: Simulation) -> None:
        await today.using(delay=86_400).submit()
        await today.using(at=datetime(2026, 11, 17, 9, tzinfo=PARIS)).submit()
        await today.submit()

    simulate(app, START, START + timedelta(days=3), scenario=asks)
    assert days == ["2026-11-15", "2026-11-16", "2026-11-17"]


@pytest.mark.parametrize(
    ("unit", "count"), [("hour", 48), ("day", 3), ("week", 2), ("month", 1)], ids=["hour", "day", "week", "month"]
)
def test_a_schedule_makes_one_run_per_period(unit: Unit, count: int) -> None:
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(once=Period(unit), schedule=Every(minutes=7))
    async def often() -> None: ...

    simulation = simulate(app, START, START + timedelta(hours=48))
    periods = [run.origin.period for run in simulation.of("often")]
    assert (len(periods), len(set(periods))) == (count, count)


def test_a_schedule_and_a_submit_of_one_day_are_the_same() -> None:
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(once=Period.day(), schedule=DailyAt(15))
    async def report() -> None: ...

    async def asks(simulation: Simulation) -> None:
        await report.submit()

    simulation = simulate(app, START, START + timedelta(days=2), scenario=asks)
    assert [(run.origin.kind, run.origin.period) for run in simulation.of("report")] == [
        ("submit", "2026-11-15"),
        ("schedule", "2026-11-16"),
    ]
    assert {run.state for run in simulation.of("report")} == {State.SUCCEEDED}


def test_a_backfill_leaves_out_what_is_done() -> None:
    app, days = Rota("memory://"), list[str | None]()

    @app.task(once=Period.day(), schedule=DailyAt(3))
    async def report(ctx: Context) -> None:
        days.append(ctx.period)

    async def fills(simulation: Simulation) -> None:
        await asyncio.sleep(86_400)
        first, last = datetime(2026, 11, 14, tzinfo=UTC), datetime(2026, 11, 16, 6, tzinfo=UTC)
        await app.schedules.backfill("report", first, last)

    simulate(app, START, START + timedelta(days=1, hours=6), scenario=fills)
    assert days == ["2026-11-16", "2026-11-14", "2026-11-15"]


def test_a_function_names_periods_of_ones_own() -> None:
    app, seen = Rota("memory://"), list[str | None]()

    @app.task(once=lambda at: f"Q{(at.month + 2) // 3}")
    async def quarterly(ctx: Context) -> None:
        seen.append(ctx.period)

    async def asks(simulation: Simulation) -> None:
        await quarterly.submit()
        await asyncio.sleep(1)
        with pytest.raises(Refused):
            await quarterly.submit()

    simulate(app, START, START + timedelta(hours=1), scenario=asks)
    assert seen == ["Q4"]
    with pytest.raises(InvalidOptions, match="Period instead of a function"):
        app.task(name="late", once=lambda at: "x", schedule=DailyAt(3))(lambda: None)


def test_a_mark_lives_as_long_as_its_period() -> None:
    app, months = Rota("memory://"), list[str | None]()

    @app.task(once=Period.month(), schedule=Every(hours=12))
    async def monthly(ctx: Context) -> None:
        months.append(ctx.period)

    simulate(app, START - timedelta(days=14), START + timedelta(days=20))
    assert months == ["2026-11", "2026-12"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"once": "day"}, "a period such as Period.day"),
        ({"once": Period.day(), "unique": "queued"}, "leave out unique"),
        ({"once": Period.day(), "schedule": DailyAt(3), "overlap": "queue"}, "leave out overlap"),
    ],
)
def test_what_does_not_go_together_is_said_when_it_is_defined(options: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidOptions, match=why):
        Rota("memory://").task(name="x", **options)(lambda: None)  # type: ignore[call-overload]
