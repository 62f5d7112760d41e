"""The servers of FastAPI: each process has one engine, a tick makes one run, and a stop strands no run."""

import signal
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from rota.domain.run import State
from tests.django.served.site import Site, more_servers

API = "tests.web.served.api:api"
PYTHON = (sys.executable, "-m")
UVICORN = (*PYTHON, "uvicorn", "--port", "PORT", API)
GUNICORN = (*PYTHON, "gunicorn", "-b", "127.0.0.1:PORT", "--graceful-timeout", "6", "--no-control-socket", "-w", "2")
HYPERCORN = (*PYTHON, "hypercorn", "-b", "127.0.0.1:PORT")
SETUPS = {
    "uvicorn workers": ((*UVICORN, "--workers", "2"), 2),
    "uvicorn": (UVICORN, 1),
    "uvicorn reload": ((*UVICORN, "--reload", "--reload-dir", "tests/web/served"), 1),
    "gunicorn uvicorn-worker": ((*GUNICORN, "-k", "uvicorn_worker.UvicornWorker", API), 2),
    "gunicorn asgi": ((*GUNICORN, "-k", "asgi", API), 2),
    "granian": ((*PYTHON, "granian", "--port", "PORT", "--interface", "asgi", "--workers", "2", API), 2),
    "hypercorn": ((*HYPERCORN, API), 1),
    "hypercorn workers": ((*HYPERCORN, "-w", "2", API), 2),
}


async def served(name: str, folder: Path, ticks: int, path: str = "") -> None:
    command, processes = SETUPS[name]
    grace = "60" if "gunicorn" in name else "0.5"  # longer than gunicorn waits for its workers
    async with Site(folder, *command, path=path, ROTA_GRACE=grace) as site:
        await site.workers(processes)
        nominal = await site.ticks(ticks)
        assert {round(later - earlier) for earlier, later in pairwise(nominal)} == {1}
        run = await site.lingering()
        site.stop(signal.SIGTERM)
        assert await site.state(run) is State.QUEUED, site.log


@pytest.mark.parametrize("name", ["uvicorn", "gunicorn asgi"])
async def test_the_engine_ends_with_the_signal_and_not_with_the_last_request(name: str, tmp_path: Path) -> None:
    """Also where the settings give handlers more time than gunicorn gives its workers."""
    async with Site(tmp_path, *SETUPS[name][0], ROTA_GRACE="0.5" if name == "uvicorn" else "60") as site:
        await site.asked("/hang", "a request hangs")
        run = await site.lingering()
        site.process.send_signal(signal.SIGTERM)
        await site.given_back(run)


async def test_a_page_that_hears_events_keeps_no_server_from_its_end(tmp_path: Path) -> None:
    async with Site(tmp_path, *UVICORN) as site:
        await site.asked("/rota/api/v1/events", "event: hello")
        run = await site.lingering()
        site.stop(signal.SIGTERM)
        assert await site.state(run) is State.QUEUED, site.log


async def test_a_tick_makes_one_run_with_two_processes(tmp_path: Path) -> None:
    await served("uvicorn workers", tmp_path, 2)


@pytest.mark.soak
@pytest.mark.parametrize("name", SETUPS)
async def test_a_tick_makes_one_run_under_every_server(name: str, tmp_path: Path) -> None:
    await served(name, tmp_path, 20, more_servers())
