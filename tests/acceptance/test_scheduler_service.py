"""Rows of the second source document: schedules that are changed while schedulers run."""

import asyncio
import os
from pathlib import Path

import pytest

from rota import Every, Rota, ScheduleNotFound
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
