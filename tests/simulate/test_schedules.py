"""Schedules in virtual time, on the real engine: every policy over days, in moments."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rota import Context, Cron, DailyAt, Every, InvalidOptions, Retry, Rota, State
from rota.app.core import core_of
from rota.domain.decision import DecisionCount, Reason
from rota.domain.schedule import CatchUp
from rota.store import RowQuery
from rota.testing import simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 3, 1, 0, 0, 30, tzinfo=UTC)


PARIS = ZoneInfo("Europe/Paris")


def nominals(simulation: Simulation, task: str) -> list[datetime]:
    return [datetime.fromtimestamp(run.origin.nominal or 0, UTC) for run in simulation.of(task)]


async def decided(app: Rota, task: str, reason: Reason) -> list[DecisionCount]:
    rows = (await (await app.client().store()).rows(DecisionCount, RowQuery(task=task))).items
    return [row for row in rows if row.reason is reason]


def test_a_cron_fires_at_its_wall_times_across_a_clock_change() -> None:
    app = Rota("memory://", tz="Europe/Paris")
    seen: list[datetime] = []

    @app.task(schedule=Cron("30 2 * * *"))
    async def nightly(ctx: Context) -> None:
        assert ctx.nominal is not None
        seen.append(ctx.nominal.astimezone(PARIS))

    start = datetime(2026, 3, 27, 12, tzinfo=PARIS)
    simulation = simulate(app, start, start + timedelta(days=4))
    walls = [at.strftime("%d %H:%M %Z") for at in seen]
    assert walls == ["28 02:30 CET", "29 03:00 CEST", "30 02:30 CEST", "31 02:30 CEST"], "the gap fires at its end"
    assert [run.due_at for run in simulation.runs] == [at.timestamp() for at in seen]


def test_an_interval_keeps_its_anchor_however_often_the_process_restarts() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1))
    async def hourly() -> None: ...

    async def restarts(simulation: Simulation) -> None:
        while True:
            await asyncio.sleep(60)
            simulation.crash()

    simulation = simulate(app, START, START + timedelta(hours=5, minutes=1), scenario=restarts)
    assert nominals(simulation, "hourly") == [START + timedelta(hours=n) for n in range(1, 6)]


def test_a_tick_while_the_last_run_is_unfinished_is_skipped_and_recorded() -> None:
    app = Rota("memory://")
    rows: list[DecisionCount] = []

    @app.task(schedule=Every(minutes=1))
    async def slow() -> None:
        await asyncio.sleep(150)

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(599)
        rows.extend(await decided(app, "slow", Reason.ALREADY_RUNNING))

    simulation = simulate(app, START, START + timedelta(minutes=10), scenario=scenario)
    assert nominals(simulation, "slow") == [START + timedelta(minutes=n) for n in (1, 4, 7)]
    assert [row.count for row in rows] == [6]


def test_overlap_queue_keeps_one_behind_and_allow_runs_beside() -> None:
    app = Rota("memory://")
    beside = most = 0

    @app.task(schedule=Every(minutes=1), overlap="queue")
    async def queued() -> None:
        await asyncio.sleep(150)

    @app.task(schedule=Every(minutes=1), overlap="allow")
    async def allowed() -> None:
        nonlocal beside, most
        beside += 1
        most = max(most, beside)
        await asyncio.sleep(150)
        beside -= 1

    simulation = simulate(app, START, START + timedelta(minutes=10))
    starts = simulation.starts("queued")
    assert [round((b - a).total_seconds()) for a, b in pairwise(starts)] == [150, 150, 150]
    assert (len(simulation.starts("allowed")), most) == (9, 3)


def test_overlap_queue_waits_behind_a_tick_that_is_tried_again() -> None:
    app = Rota("memory://")
    calls: list[tuple[int, int]] = []

    @app.task(schedule=Every(minutes=5), overlap="queue", retry=Retry(2, backoff="fixed", delay=420, jitter=0))
    async def report(ctx: Context) -> None:
        assert ctx.nominal is not None
        calls.append((ctx.nominal.minute, ctx.attempt))
        if ctx.attempt < 3 and ctx.nominal.minute == 5:
            raise ValueError("not yet")

    simulate(app, START, START + timedelta(minutes=31))
    assert calls == [(5, 1), (5, 2), (5, 3), (15, 1), (20, 1), (25, 1), (30, 1)], "the newest of those behind it wins"


@pytest.mark.parametrize(
    ("catch_up", "made_up", "missed"),
    [("latest", 1, 2), ("all", 3, 0), ("skip", 0, 3)],
)
def test_down_for_days_each_policy_does_what_it_says(catch_up: CatchUp, made_up: int, missed: int) -> None:
    app = Rota("memory://")
    rows: list[DecisionCount] = []

    @app.task(schedule=DailyAt(9), catch_up=catch_up)
    async def daily() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(86_400)  # one tick on time
        simulation.crash(restart=3 * 86_400)
        await asyncio.sleep(3 * 86_400 + 60)
        rows.extend(await decided(app, "daily", Reason.MISSED))

    simulation = simulate(app, START, START + timedelta(days=4, hours=1), scenario=scenario)
    runs = simulation.of("daily")
    assert len(runs) == 1 + made_up
    assert sum(row.count for row in rows) == missed
    last = START.replace(day=4, hour=9, minute=0, second=0)
    assert nominals(simulation, "daily")[1:] == [last - timedelta(days=n) for n in reversed(range(made_up))]


@pytest.mark.parametrize("catch_up", ["latest", "all", "skip"])
def test_thirty_days_down_with_a_one_second_schedule_is_bounded_work(catch_up: CatchUp) -> None:
    app = Rota("memory://")
    rows: list[DecisionCount] = []

    @app.task(schedule=Every(1), catch_up=catch_up, overlap="allow")
    async def each_second() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(10.5)
        simulation.crash(restart=30 * 86_400)
        await asyncio.sleep(30 * 86_400 + 0.2)
        rows.extend(await decided(app, "each_second", Reason.MISSED))

    simulation = simulate(app, START, START + timedelta(days=30, seconds=11), scenario=scenario)
    away = 30 * 86_400
    made_up = 100 if catch_up == "all" else 1
    assert len(simulation.of("each_second")) == 10 + made_up
    assert [row.count for row in rows] == [away - made_up]
    times = nominals(simulation, "each_second")
    assert times[-1] == START + timedelta(seconds=10 + away), "the last one is on time, whatever the policy"


def test_made_up_ticks_run_one_after_the_other() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(minutes=1), catch_up="all")
    async def each() -> None:
        await asyncio.sleep(2)

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(1)
        simulation.crash(restart=600)

    simulation = simulate(app, START, START + timedelta(minutes=10, seconds=50), scenario=scenario)
    starts = simulation.starts("each")
    assert len(starts) == 10
    assert [(b - a).total_seconds() for a, b in pairwise(starts)] == [2.0] * 9


def test_a_run_that_cannot_start_within_its_grace_never_does() -> None:
    app = Rota("memory://", concurrency=1)

    @app.task
    async def hog() -> None:
        await asyncio.sleep(3600)

    @app.task(schedule=DailyAt(0, 10), grace=600)
    async def soon() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await hog.submit()

    simulation = simulate(app, START, START + timedelta(hours=2), scenario=scenario)
    (run,) = simulation.of("soon")
    assert (run.state, run.reason) == (State.CANCELLED, Reason.EXPIRED)
    assert run.expires_at == START.replace(minute=20, second=0).timestamp()


def test_pause_and_resume_skip_what_was_missed() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(minutes=10), catch_up="all")
    async def each() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await asyncio.sleep(15 * 60)
        assert await app.schedules.pause("each", "maintenance")
        assert not await app.schedules.pause("each")
        await asyncio.sleep(30 * 60)
        assert await app.schedules.resume("each")

    simulation = simulate(app, START, START + timedelta(hours=1, minutes=1), scenario=scenario)
    assert nominals(simulation, "each") == [START + timedelta(minutes=n) for n in (10, 50, 60)]


def test_jitter_is_the_same_for_the_same_tick_and_never_early() -> None:
    def history() -> list[tuple[float, float]]:
        app = Rota("memory://")

        @app.task(schedule=Every(minutes=5, jitter=120))
        async def each() -> None: ...

        simulation = simulate(app, START, START + timedelta(hours=2))
        return [(run.origin.nominal or 0, run.due_at) for run in simulation.runs]

    first = history()
    assert first == history()
    late = [due - nominal for nominal, due in first]
    assert all(0 <= seconds < 120 for seconds in late)
    assert len(set(late)) > 10, "each tick has its own"


def test_schedules_put_at_run_time_are_noticed_at_once_changed_and_deleted() -> None:
    app = Rota("memory://")

    @app.task
    async def greet(name: str) -> None: ...

    async def scenario(simulation: Simulation) -> None:
        begin, end = START + timedelta(minutes=2), START + timedelta(minutes=4, seconds=59)
        await app.schedules.put("ada", Every(minutes=1), greet.bind("Ada"), start=begin, end=end)
        await app.schedules.put("bob", Every(minutes=1), greet.bind("Bob"))
        await asyncio.sleep(90)
        await app.schedules.put("bob", Every(seconds=30), greet.bind("Bob"))
        await asyncio.sleep(70)
        await app.schedules.delete("bob")

    simulation = simulate(app, START, START + timedelta(minutes=10), scenario=scenario)
    seen = [(run.origin.of, round(run.due_at - START.timestamp())) for run in simulation.runs]
    assert [at for name, at in seen if name == "ada"] == [120, 180, 240]
    assert [at for name, at in seen if name == "bob"] == [60, 120, 150]


def test_hundreds_of_schedules_over_a_week_take_moments() -> None:
    app = Rota("memory://")

    @app.task
    async def each(n: int) -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await app.schedules.put_many([(f"s{n}", DailyAt(n % 24), each.bind(n)) for n in range(240)])

    simulation = simulate(app, START, START + timedelta(days=7), scenario=scenario)
    assert len(simulation.runs) == 240 * 7
    assert simulation.claims < 3 * 24 * 7 * 12, "the clock leaps from tick to tick"


def test_whoever_says_something_new_at_every_start_still_sees_it_fire() -> None:
    app = Rota("memory://")

    @app.task
    async def poll() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        for half_hour in range(10):
            end = simulation.now + timedelta(days=7)
            await app.schedules.put("poll", Every(hours=1, jitter=half_hour + 1), poll.bind(), end=end)
            await asyncio.sleep(1801)

    simulation = simulate(app, START, START + timedelta(hours=5, minutes=1), scenario=scenario)
    assert nominals(simulation, "poll") == [START + timedelta(hours=n) for n in range(1, 6)]


def test_overdue_ticks_of_a_schedule_that_is_changed_are_recorded() -> None:
    app = Rota("memory://")
    rows: list[DecisionCount] = []

    @app.task
    async def report() -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await app.schedules.put("report", DailyAt(9), report.bind(), catch_up="all")
        await asyncio.sleep(60)
        simulation.crash(restart=3 * 86_400 + 60)
        await asyncio.sleep(3 * 86_400)
        await app.schedules.put("report", DailyAt(10), report.bind(), catch_up="all")
        rows.extend(await decided(app, "report", Reason.MISSED))

    simulation = simulate(app, START, START + timedelta(days=3, hours=1), scenario=scenario)
    assert simulation.runs == []
    assert [row.count for row in rows] == [3]


def test_a_renamed_task_takes_its_schedule_along() -> None:
    old, new = Rota("memory://", name="shop"), Rota("memory://", name="shop")
    old.task(name="old", schedule=Every(hours=1))(lambda: None)
    new.task(name="new", schedule=Every(hours=1), aliases=["old"])(lambda: None)

    async def scenario(simulation: Simulation) -> None:
        await new.schedules.declare(core_of(old).registry.declared())  # what stands in the store since the last release
        before = (await new.schedules.get("old")).next_at
        await asyncio.sleep(600)
        await core_of(new).declare_schedules()
        (schedule,) = await new.schedules.list()
        assert (schedule.id, schedule.next_at) == ("new", before)

    simulation = simulate(new, START, START + timedelta(hours=3, minutes=1), scenario=scenario)
    assert [run.task for run in simulation.runs] == ["new"] * 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"grace": 0}, "grace=0 lets no run start"),
        ({"schedule": Every(300, jitter=240), "grace": 10}, "beyond their grace"),
        ({"unique": "done"}, "once and never again"),
        ({"unique": "active", "catch_up": "all"}, "wants a run for every tick"),
    ],
)
def test_policies_that_can_never_work_are_refused_where_they_are_written(options: dict[str, Any], says: str) -> None:
    chosen: Any = {"name": "nightly", "schedule": DailyAt(3), **options}
    with pytest.raises(InvalidOptions, match=f"(?s)nightly.*{says}"):
        Rota("memory://").task(**chosen)(lambda: None)
