"""The tour, part 3: schedules, and days that pass in moments."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from rota import Activity, Breaker, Context, Cron, DailyAt, Every, InvalidOptions, Rota, ScheduleChanged
from rota.testing import drain, simulate
from rota.testing.simulation import Simulation

START = datetime(2026, 5, 4, tzinfo=UTC)


def test_a_task_runs_by_itself() -> None:
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(schedule=Cron("0 9 * * mon-fri"))
    async def report(ctx: Context) -> str:
        return f"the report of {ctx.nominal:%d %B}"

    week = simulate(app, START, START + timedelta(days=7))
    assert [f"{at:%a %H:%M}" for at in week.starts(report)] == [
        "Mon 07:00",
        "Tue 07:00",
        "Wed 07:00",
        "Thu 07:00",
        "Fri 07:00",
    ]


def test_a_trigger_can_say_itself_in_words_and_be_read_back() -> None:
    trigger = Cron("*/15 7-22 * * *", tz="Europe/Paris")
    assert trigger.describe() == "every 15 minutes from 07:00 to 22:45, Paris time"
    assert str(trigger) == "cron */15 7-22 * * * Europe/Paris"
    assert trigger.parse(str(trigger)) == trigger
    assert trigger.next_after(START) == datetime(2026, 5, 4, 5, tzinfo=UTC)


def test_triggers_combine() -> None:
    office = Every(minutes=30) & Cron("* 9-17 * * mon-fri")
    assert str(office | DailyAt(22)) == "(every 30m and cron * 9-17 * * mon-fri) or daily 22:00"
    assert Every(weeks=2, at="09:00", tz="Europe/Paris").describe() == "every 2 weeks at 09:00, Paris time"
    assert str(DailyAt(9, jitter=300).excluding(Cron("* * * 8 *"))) == "daily 09:00 jitter 5m excluding cron * * * 8 *"


def test_a_newer_tick_can_replace_a_run_that_takes_too_long() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1), overlap="replace")
    async def mirror() -> None:
        await asyncio.sleep(5400)

    day = simulate(app, START, START + timedelta(hours=3, minutes=30))
    assert [run.state for run in day.of(mirror)] == ["cancelled", "cancelled", "running"]


def test_schedules_can_be_made_while_the_app_runs() -> None:
    app = Rota("memory://")

    @app.task
    async def remind(name: str) -> None: ...

    async def scenario(simulation: Simulation) -> None:
        await app.schedules.put("ada", DailyAt(8), remind.bind("Ada"))
        await asyncio.sleep(2.5 * 86_400)
        await app.schedules.pause("ada", "she is on holiday")
        await asyncio.sleep(2 * 86_400)
        await app.schedules.resume("ada")

    days = simulate(app, START, START + timedelta(days=7), scenario=scenario)
    assert [at.day for at in days.starts(remind)] == [4, 5, 6, 8 + 1, 8 + 2]


def test_a_schedule_may_have_an_end_a_breaker_and_a_pause_that_ends_by_itself() -> None:
    app = Rota("memory://")

    @app.task
    async def remind(name: str) -> None:
        if name == "bob":
            raise ConnectionError("no such address")

    async def scenario(simulation: Simulation) -> None:
        await app.schedules.put("thrice", DailyAt(8), remind.bind("ada"), times=3)
        await app.schedules.put("broken", DailyAt(9), remind.bind("bob"), breaker=Breaker(2, cool_down=3 * 86_400))
        await app.schedules.put("thrice", DailyAt(20), remind.bind("ada"), if_absent=True)
        seen = await app.schedules.put("holiday", DailyAt(10), remind.bind("cyd"), paused=True)
        await app.schedules.resume("holiday")
        with pytest.raises(ScheduleChanged):
            await app.schedules.put("holiday", DailyAt(11), remind.bind("cyd"), if_version=seen.version)
        await app.schedules.pause("holiday", "on the road", until=timedelta(days=2))

    days = simulate(app, START, START + timedelta(days=6), scenario=scenario)
    made = Counter(run.origin.of for run in days.of(remind))
    assert made == {"thrice": 3, "broken": 3, "holiday": 4}, "the breaker lets one in again after three days"


def test_schedules_follow_a_table_of_your_own() -> None:
    app = Rota("memory://")

    @app.task
    async def sync(customer: str) -> None: ...

    async def follow(rows: dict[str, str]) -> None:
        await app.schedules.reconcile(
            "sync", rows, key=lambda name: name, trigger=lambda name: rows[name], call=lambda name: sync.bind(name)
        )

    async def scenario(simulation: Simulation) -> None:
        await follow({"acme": "daily 08:00", "zoo": "daily 09:00"})
        assert [schedule.id for schedule in await app.schedules.list()] == ["sync/acme", "sync/zoo"]
        await follow({"acme": "daily 10:00"})

    day = simulate(app, START, START + timedelta(days=1), scenario=scenario)
    assert [f"{at:%H:%M}" for at in day.starts(sync)] == ["10:00"]


def test_a_night_of_downtime_is_made_up_as_the_schedule_says() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(hours=1), catch_up="latest")
    async def sync() -> None: ...

    async def outage(simulation: Simulation) -> None:
        await asyncio.sleep(90 * 60)
        simulation.crash(restart=8 * 3600)

    night = simulate(app, START, START + timedelta(hours=11), scenario=outage)
    assert [f"{at:%H:%M}" for at in night.starts(sync)] == ["01:00", "09:30", "10:00"]


async def test_work_can_follow_activity() -> None:
    app = Rota("memory://")
    summaries: list[int] = []

    @app.task(activity=Activity(after=1800, key="{user}"))
    async def summarise(user: str, last_page: int) -> None:
        summaries.append(last_page)

    for page in range(5):
        assert await summarise.touch("ada", page)
    await drain(app)
    assert summaries == [], "not before half an hour has passed"
    app.backend.skew += 1800
    await drain(app)
    assert summaries == [4]
    assert (await summarise.touch("ada", 5)).reason == "resting"


def test_what_cannot_be_is_said_when_it_is_defined() -> None:
    app = Rota("memory://")
    with pytest.raises(InvalidOptions, match="minute"):
        app.task(schedule="61 * * * *")(lambda: None)
    with pytest.raises(InvalidOptions, match="calls it without arguments"):
        app.task(name="needs", schedule=Every(60))(lambda page: None)
    with pytest.raises(InvalidOptions, match="catch_up='all' wants a run for every tick"):
        app.task(name="both", schedule=Every(60), catch_up="all", overlap="skip")(lambda: None)
