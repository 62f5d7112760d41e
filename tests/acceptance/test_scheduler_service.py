"""Rows of the second source document: schedules that are changed while schedulers run."""

import asyncio
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import Context, Cron, Every, Reason, Rota, ScheduleNotFound, State
from rota.app.core import core_of
from rota.domain.decision import DecisionCount
from rota.store import RowQuery
from rota.stores.memory import MemoryBackend
from rota.testing import Simulation, simulate
from tests.processes import Process
from tests.requirement import requirement

SERVICE = """
import sys
from rota import Rota
from rota.app.core import core_of

app = Rota()

@app.task
async def ping(who: str) -> None:
    sys.stdout.write(f"ping {who}\\n")
    sys.stdout.flush()
"""


@requirement("1.2")
async def test_1_2_schedules_survive_restart_and_a_running_scheduler_notices_changes_at_once(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(SERVICE)
    url = f"sqlite:///{tmp_path / 'rota.db'}"
    paths = os.pathsep.join(path for path in (str(tmp_path), os.environ.get("PYTHONPATH")) if path)
    env = {"ROTA_URL": url, "PYTHONPATH": paths}
    command = ("-m", "rota", "worker", "-A", "service:app")
    app = Rota(url)

    @app.task
    async def ping(who: str) -> None: ...

    async with app.client():
        await app.schedules.put("a", Every(0.2), ping.bind("created before the start"))
        with Process(*command, env=env) as scheduler:
            scheduler.wait_for("ping created before the start")
            await app.schedules.put("b", Every(0.2), ping.bind("created"))
            await asyncio.to_thread(scheduler.wait_for, "ping created$")
            await app.schedules.put("b", Every(0.2), ping.bind("changed"))
            await asyncio.to_thread(scheduler.wait_for, "ping changed$")
            await app.schedules.delete("b")
            before = (await app.schedules.get("a")).version
        with Process(*command, env=env) as scheduler:
            scheduler.wait_for("ping created before the start")
            assert not any("changed" in line for line in scheduler.lines[3:]), "deleted is deleted"
        left = await app.schedules.list()
        assert [(schedule.id, schedule.version) for schedule in left] == [("a", before)]
        with pytest.raises(ScheduleNotFound, match="no schedule b"):
            await app.schedules.get("b")


@requirement("1.9")
def test_1_9_the_execution_history_of_a_schedule_names_each_run_and_its_outcome() -> None:
    """One read: for every tick the run that stands for it, and how that ended; a skipped tick names what stood in its
    way."""
    app, start = Rota("memory://"), datetime(2026, 11, 15, tzinfo=UTC)

    @app.task
    async def ping(ctx: Context, who: str) -> None:
        assert ctx.nominal is not None
        if ctx.nominal.minute == 2:
            raise ValueError("no answer")
        await asyncio.sleep(90 if ctx.nominal.minute == 3 else 1)

    async def looks(_: Simulation) -> None:
        await app.schedules.put("a", Every(60, anchor=start), ping.bind("Ada"))
        await asyncio.sleep(5 * 60 + 30)
        ticks = await app.schedules.ticks("a", 4)
        assert [(tick.nominal.minute, tick.reason, tick.state) for tick in ticks] == [
            (2, Reason.ACCEPTED, State.FAILED),
            (3, Reason.ACCEPTED, State.SUCCEEDED),
            (4, Reason.ALREADY_RUNNING, None),
            (5, Reason.ACCEPTED, State.SUCCEEDED),
        ]
        assert ticks[2].run_id == ticks[1].run_id
        assert [str(tick.run.error) for tick in ticks if tick.run is not None and tick.run.error] == [
            "ValueError: no answer"
        ]
        assert len(await app.schedules.ticks("a")) == 5

    simulate(app, start, start + timedelta(hours=1), scenario=looks)


# -- 1.1, 1.10, 1.13 -----------------------------------------------------------------------------------------------

START = datetime(2026, 11, 15, tzinfo=UTC)


@requirement("1.1")
def test_1_1_any_number_of_schedulers_makes_each_tick_one_run() -> None:
    """Also a run that is over before the other schedulers look: a tick is claimed, not a lock."""
    app = Rota("memory://")

    @app.task(schedule=Every(seconds=1, anchor=START))
    async def ping() -> None: ...

    simulation = simulate(app, START, START + timedelta(seconds=60.5), workers=8)
    assert [at - START for at in simulation.starts(ping)] == [timedelta(seconds=n) for n in range(1, 61)]


@requirement("1.13")
def test_1_13_seven_days_of_four_schedulers_and_a_crash_an_hour_without_a_duplicate() -> None:
    """Each tick has one run, and each run one success; a crash costs a call, never a tick."""
    app = Rota("memory://")

    @app.task(schedule=Every(minutes=15, anchor=START))
    async def report() -> None:
        await asyncio.sleep(40)

    async def an_unruly_week(simulation: Simulation) -> None:
        while True:
            await asyncio.sleep(simulation.random.uniform(0, 7200))
            simulation.crash(restart=simulation.random.uniform(0, 300))

    simulation = simulate(app, START, START + timedelta(days=7, minutes=1), scenario=an_unruly_week, workers=4)
    runs = simulation.of(report)
    assert [run.origin.nominal for run in runs] == [START.timestamp() + 900 * n for n in range(1, 7 * 96 + 1)]
    assert {run.state for run in runs[:-1]} == {State.SUCCEEDED}
    assert all([attempt.outcome for attempt in run.attempts].count("succeeded") == 1 for run in runs[:-1])
    assert sum(run.losses for run in runs) > 0, "it was an unruly week"


# -- 1.3, 1.4, 1.5 -------------------------------------------------------------------------------------------------


@requirement("1.3")
async def test_1_3_the_embedded_engine_is_switched_off_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the process only submits, and a dedicated one does the work."""
    backend = MemoryBackend()
    monkeypatch.setenv("ROTA_ENABLED", "false")
    web = Rota(backend)
    monkeypatch.delenv("ROTA_ENABLED")
    dedicated = Rota(backend)

    async def ping() -> str:
        return "pong"

    task = web.task(ping)
    dedicated.task(ping)
    async with web:
        assert not web.status().running
        run = await task.submit()
        async with dedicated:
            assert await run.result(timeout=10) == "pong"


@requirement("1.4")
async def test_1_4_an_instance_has_a_random_name_that_no_other_has() -> None:
    """Two containers from one image, with one host name and one process id, are two."""
    backend = MemoryBackend()
    async with Rota(backend, name="shop") as one, Rota(backend, name="shop") as two:
        names = {one.status().worker, two.status().worker}
    assert len(names) == 2
    assert all(re.fullmatch("shop-[0-9a-f]{16}", str(name)) for name in names)


@requirement("1.5")
def test_1_5_a_lease_of_thirty_seconds_is_renewed_while_its_handler_works() -> None:
    app = Rota("memory://")
    assert (core_of(app).tuning.lease, core_of(app).tuning.renew_every) == (30.0, 10.0)

    @app.task
    async def long() -> None:
        await asyncio.sleep(3600)

    async def submits(_: Simulation) -> None:
        await long.submit()

    simulation = simulate(app, START, START + timedelta(hours=2), scenario=submits, workers=3)
    assert len(simulation.starts(long)) == 1


# -- 1.11, 1.12 ----------------------------------------------------------------------------------------------------


@requirement("1.11")
async def test_1_11_a_move_to_another_store_carries_the_next_tick(tmp_path: Path) -> None:
    """A cut-over misses nothing and makes nothing twice: the schedule stands where it stood."""
    old, new = f"sqlite:///{tmp_path / 'old.db'}", f"sqlite:///{tmp_path / 'new.db'}"
    app = Rota(old)

    @app.task
    async def ping() -> None: ...

    before = await app.schedules.put("a", Every(minutes=7), ping.bind())
    await app.stop()
    command = [sys.executable, "-m", "rota", "move", "--from", old, "--to", new]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    assert "1 schedule" in done.stdout
    moved = Rota(new)
    after = await moved.schedules.get("a")
    await moved.stop()
    assert (after.next_at, after.anchor) == (before.next_at, before.anchor)


@requirement("1.12")
async def test_1_12_back_and_forth_between_dedicated_and_embedded_each_tick_comes_once() -> None:
    """The engine moves from one process to another and back under short ticks, with both at work in between."""
    backend, seen, news = MemoryBackend(), list[int](), asyncio.Event()

    def made() -> Rota:
        app = Rota(backend, name="shop")

        @app.task(schedule=Every(seconds=0.1), overlap="allow", catch_up="all")
        async def ping(ctx: Context) -> None:
            assert ctx.nominal is not None
            seen.append(round(ctx.nominal.timestamp() * 10))
            news.set()

        return app

    async def more(count: int) -> None:
        wanted = len(seen) + count
        while len(seen) < wanted:
            news.clear()
            await news.wait()

    dedicated, embedded = made(), made()
    async with asyncio.timeout(60):
        await dedicated.start()
        await more(4)
        await embedded.start()
        await more(4)
        await dedicated.stop()
        await more(4)
        await dedicated.start()
        await embedded.stop()
        await more(4)
        await dedicated.stop()
    assert sorted(seen) == list(range(min(seen), min(seen) + len(seen))), "none twice, none missed"


@requirement("1.a")
def test_beyond_weekdays_are_numbered_from_sunday_and_names_are_preferred() -> None:
    """0 and 7 are Sunday, as in cron; APScheduler's 0 is Monday."""
    start = datetime(2026, 11, 15, 12, tzinfo=UTC)  # a Sunday
    for word in ("0", "7", "sun"):
        assert Cron(f"0 9 * * {word}").next_after(start) == datetime(2026, 11, 22, 9, tzinfo=UTC)


@requirement("1.b")
def test_beyond_a_skipped_tick_leaves_a_trace() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(60, anchor=START))
    async def slow() -> None:
        await asyncio.sleep(90)

    async def looks(_: Simulation) -> None:
        await asyncio.sleep(130)
        rows = (await (await app.client().store()).rows(DecisionCount, RowQuery(task="slow"))).items
        assert [(row.reason, row.count) for row in rows] == [(Reason.ALREADY_RUNNING, 1)]

    simulate(app, START, START + timedelta(minutes=4), scenario=looks)
