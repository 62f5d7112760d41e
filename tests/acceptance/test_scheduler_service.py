"""Rows of the second source document: schedules that are changed while schedulers run."""

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rota import Context, Every, Reason, Rota, ScheduleNotFound, State
from rota.testing import Simulation, simulate
from tests.processes import Process

SERVICE = """
import sys
from rota import Rota

app = Rota()

@app.task
async def ping(who: str) -> None:
    sys.stdout.write(f"ping {who}\\n")
    sys.stdout.flush()
"""


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
