"""Rows of the third source document: a decorator that leaves functions alone, a watchdog, a status."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from rota import Cron, DailyAt, Every, Monthly, Rota, RunFailed, Weekly
from rota.stores.memory import MemoryBackend
from rota.testing import Simulation, simulate
from storekit.faults import FaultyBackend
from tests.requirement import requirement


@requirement("2.4")
def test_2_4_a_registered_function_is_still_callable_in_tests() -> None:
    app = Rota("memory://")

    @app.task(name="nightly", enabled=True)
    def clean(days: int) -> int:
        return days + 1

    assert clean(1) == 2
    assert clean.fn(1) == 2
    assert app.tasks["nightly"] is clean


@requirement("2.5")
async def test_2_5_what_dies_is_restarted_and_seen_and_start_is_idempotent() -> None:
    backend = FaultyBackend(MemoryBackend())
    app = Rota(backend)

    @app.task
    async def work() -> str:
        return "done"

    backend.fail("sweep", RuntimeError("the janitor dies"))
    backend.fail("claim", RuntimeError("the worker dies"))
    async with app:
        await app.start()
        assert await (await work.submit()).result(timeout=10) == "done"
        restarts = {loop.name: loop.restarts for loop in app.status().loops}
        assert restarts["worker"] == 1
        assert restarts["janitor"] == 1
        assert all(loop.alive for loop in app.status().loops)


@requirement("2.9")
async def test_2_9_status_per_task_and_the_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="rota")
    app = Rota("memory://")
    started, go = asyncio.Event(), asyncio.Event()

    @app.task
    async def report() -> None:
        started.set()
        await go.wait()

    @app.task
    async def broken() -> None:
        raise ValueError("no data")

    async with app:
        run = await report.submit()
        await started.wait()
        status = app.status().tasks["report"]
        assert (status.alive, status.running) == (True, 1)
        go.set()
        await run.result(timeout=10)
        with pytest.raises(RunFailed):
            await (await broken.submit()).result(timeout=10)
    for line in ("report", "started", "succeeded in", "broken", "failed after", "Traceback", "ValueError: no data"):
        assert line in caplog.text


@requirement("2.1")
def test_2_1_daily_at_is_in_the_projects_zone_and_exactly_now_means_tomorrow() -> None:
    app = Rota("memory://", tz="Asia/Kolkata")

    @app.task(schedule=DailyAt(hour=3, minute=0))
    async def backup() -> None: ...

    three = datetime(2026, 5, 4, 3, tzinfo=ZoneInfo("Asia/Kolkata"))
    simulation = simulate(app, three, three + timedelta(days=2, minutes=1))
    assert simulation.starts(backup) == [three + timedelta(days=1), three + timedelta(days=2)]


@requirement("2.2")
def test_2_2_every_with_a_jitter_of_0_to_jitter() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(seconds=3600, jitter=300))
    async def sync() -> None: ...

    start = datetime(2026, 5, 4, tzinfo=UTC)
    simulation = simulate(app, start, start + timedelta(hours=50))
    late = [(at - start).total_seconds() - 3600 * n for n, at in enumerate(simulation.starts(sync), start=1)]
    assert len(late) == 49
    assert all(0 <= seconds <= 300 for seconds in late)
    assert max(late) - min(late) > 150


@requirement("2.3")
def test_2_3_cron_weekly_and_monthly() -> None:
    app = Rota("memory://")
    trigger = {"cron": Cron("15 10 * * 1-5"), "weekly": Weekly("mon", 9, 30), "monthly": Monthly(-1, 8, 0)}
    for name, schedule in trigger.items():
        app.task(name=name, schedule=schedule)(lambda: None)

    start = datetime(2026, 2, 2, tzinfo=UTC)  # a Monday
    simulation = simulate(app, start, start + timedelta(days=28))
    assert len(simulation.starts("cron")) == 20
    assert [f"{at:%a %d %H:%M}" for at in simulation.starts("weekly")] == [
        "Mon 02 09:30",
        "Mon 09 09:30",
        "Mon 16 09:30",
        "Mon 23 09:30",
    ]
    assert [f"{at:%d %H:%M}" for at in simulation.starts("monthly")] == ["28 08:00"]


@requirement("2.8")
def test_2_8_no_run_at_start_and_an_overlap_is_skipped_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(60))
    async def slow() -> None:
        await asyncio.sleep(90)

    start = datetime(2026, 5, 4, tzinfo=UTC)
    with caplog.at_level(logging.WARNING, "rota"):
        simulation = simulate(app, start, start + timedelta(seconds=200))
    assert [(at - start).total_seconds() for at in simulation.starts(slow)] == [60.0, 180.0]
    assert "schedule slow skipped its tick of 2026-05-04 00:02:00+00:00: already_running" in caplog.text


@requirement("2.7")
async def test_2_7_status_says_when_each_task_comes_next_and_that_a_disabled_one_does_not_live() -> None:
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(schedule=DailyAt(3))
    async def backup() -> None: ...

    @app.task(schedule=Every(hours=1))
    async def sync(n: int = 1) -> None: ...

    @app.task(enabled=False)
    async def off() -> None: ...

    before = datetime.now(UTC)
    assert app.status().tasks["backup"].next is None, "nothing was read yet"
    async with app:
        status = app.status()
        assert {name: task.alive for name, task in status.tasks.items()} == {"backup": True, "sync": True, "off": False}
        nightly, hourly = status.tasks["backup"].next, status.tasks["sync"].next
        assert nightly is not None
        assert nightly.astimezone(ZoneInfo("Europe/Paris")).hour == 3
        assert hourly is not None
        assert timedelta(minutes=59) < hourly - before <= timedelta(hours=1, minutes=1)
        assert status.tasks["off"].next is None
        sooner = await app.schedules.put("sooner", Every(minutes=5), sync.bind(2))
        assert app.status().tasks["sync"].next == sooner.next
        assert app.status().schedules == {"backup": nightly, "sync": hourly, "sooner": sooner.next}
        await app.schedules.pause("backup")
        assert app.status().tasks["backup"].next is None
        await app.schedules.resume("backup")
        assert app.status().tasks["backup"].next == nightly
        await app.schedules.delete("sooner")
        assert app.status().schedules == {"backup": nightly, "sync": hourly}
    assert not any(task.alive for task in app.status().tasks.values())


@requirement("2.7")
async def test_2_7_a_status_read_before_the_last_ticks_still_says_the_next() -> None:
    """Other processes fire schedules too: the next tick follows from the trigger, however old the copy is."""
    app = Rota("memory://")

    @app.task
    async def sync() -> None: ...

    async with app.client():
        known = await app.schedules.put("often", Every(minutes=5), sync.bind())
        assert known.next_at is not None
        app.schedules.seen["often"] = replace(known, next_at=known.next_at - 3000)
        assert app.status().schedules["often"] == known.next


# -- beyond --------------------------------------------------------------------------------------------------------


@requirement("2.a")
def test_beyond_a_missed_run_is_made_up_and_an_interval_does_not_drift() -> None:
    """There, a tick that nobody was there for was lost, and each run began an interval after the last had ended."""
    app = Rota("memory://")

    @app.task(schedule=DailyAt(3))
    async def nightly() -> None: ...

    @app.task(schedule=Every(3600))
    async def hourly() -> None:
        await asyncio.sleep(600)

    start = datetime(2026, 5, 4, tzinfo=UTC)

    async def nobody_at_three(simulation: Simulation) -> None:
        await asyncio.sleep(2.9 * 3600)
        simulation.crash(restart=3600)

    simulation = simulate(app, start, start + timedelta(hours=8, minutes=1), scenario=nobody_at_three)
    assert [f"{at:%H:%M}" for at in simulation.starts(nightly)] == ["03:54"]
    assert [f"{at:%H:%M}" for at in simulation.starts(hourly)][-4:] == ["05:00", "06:00", "07:00", "08:00"]


@requirement("2.b")
def test_beyond_a_hung_run_ends_at_its_timeout_and_is_seen() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(3600), timeout=60)
    async def hangs() -> None:
        await asyncio.Event().wait()

    start = datetime(2026, 5, 4, tzinfo=UTC)
    simulation = simulate(app, start, start + timedelta(hours=3, minutes=5))
    assert [str(run.reason) for run in simulation.of(hangs)] == ["timed_out"] * 3


@requirement("2.c")
def test_beyond_a_day_with_a_clock_change_has_its_three_o_clock() -> None:
    """There, `now().replace(hour=3)` was by UTC."""
    app = Rota("memory://", tz="Europe/Paris")

    @app.task(schedule=DailyAt(3))
    async def nightly() -> None: ...

    start = datetime(2026, 3, 28, tzinfo=ZoneInfo("Europe/Paris"))
    simulation = simulate(app, start, start + timedelta(days=3))
    assert [f"{at.astimezone(UTC):%d %H:%M}" for at in simulation.starts(nightly)] == [
        "28 02:00",
        "29 01:00",
        "30 01:00",
    ]
