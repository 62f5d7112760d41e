"""The servers of FastAPI: each process has one engine, a tick makes one run, and a stop strands no run."""

import signal
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from rota.domain.run import State
from tests.django.served.site import Site

UVICORN = (sys.executable, "-m", "uvicorn", "--port", "PORT", "tests.web.served.api:api")
SETUPS = {"uvicorn workers": ((*UVICORN, "--workers", "2"), 2), "uvicorn": (UVICORN, 1)}


async def served(name: str, folder: Path, ticks: int) -> None:
    command, processes = SETUPS[name]
    async with Site(folder, *command) as site:
        await site.workers(processes)
        nominal = await site.ticks(ticks)
        assert {round(later - earlier) for earlier, later in pairwise(nominal)} == {1}
        run = await site.lingering()
        site.stop(signal.SIGTERM)
        assert await site.state(run) is State.QUEUED, site.log


async def test_a_tick_makes_one_run_with_two_processes(tmp_path: Path) -> None:
    await served("uvicorn workers", tmp_path, 2)


@pytest.mark.soak
@pytest.mark.parametrize("name", SETUPS)
async def test_a_tick_makes_one_run_under_every_server(name: str, tmp_path: Path) -> None:
    await served(name, tmp_path, 20)
