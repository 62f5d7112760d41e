"""The servers of Django: each process that serves has one engine, a tick makes one run, and a stop strands no run."""

import re
import signal
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from rota.domain.run import State
from tests.django.served.site import MANAGE, Site, more_servers
from tests.requirement import requirement

WSGI, ASGI = "tests.django.served.wsgi:application", "tests.django.served.asgi:application"
PYTHON = (sys.executable, "-m")
GUNICORN = (*PYTHON, "gunicorn", "-b", "127.0.0.1:PORT", "--graceful-timeout", "6", "--no-control-socket")
UVICORN = (*PYTHON, "uvicorn", "--port", "PORT", ASGI)
GRANIAN = (*PYTHON, "granian", "--port", "PORT")
HYPERCORN = (*PYTHON, "hypercorn", "-b", "127.0.0.1:PORT")
UWSGI = (sys.executable, "-c", "import pyuwsgi, sys; pyuwsgi.run(sys.argv[1:])", "--http-socket", "127.0.0.1:PORT")
TERM, INT, QUIT = signal.SIGTERM, signal.SIGINT, signal.SIGQUIT


class Setup(NamedTuple):
    """A way to serve: how many processes serve, and how people stop it."""

    command: tuple[str, ...]
    processes: int = 1
    sent: signal.Signals = TERM
    group: bool = False
    """Whether the signal reaches the whole process group, as Ctrl-C does."""
    apps: str = ""
    """An app that the site has beside its own."""


SHORT = {
    "runserver": Setup((*MANAGE, "runserver", "PORT"), sent=INT, group=True),
    "gunicorn preload": Setup((*GUNICORN, "--preload", "-w", "2", WSGI), 2),
    "uvicorn": Setup(UVICORN),
    "waitress": Setup((*PYTHON, "waitress", "--listen", "127.0.0.1:PORT", WSGI)),
}
LONG = {
    "runserver noreload": Setup((*MANAGE, "runserver", "--noreload", "PORT"), sent=INT, group=True),
    "runserver noreload, terminated": Setup((*MANAGE, "runserver", "--noreload", "PORT")),
    "gunicorn sync": Setup((*GUNICORN, "-w", "3", WSGI), 3),
    "gunicorn gthread": Setup((*GUNICORN, "-w", "2", "--threads", "4", WSGI), 2),
    "gunicorn uvicorn-worker": Setup((*GUNICORN, "-w", "2", "-k", "uvicorn_worker.UvicornWorker", ASGI), 2),
    "gunicorn asgi": Setup((*GUNICORN, "-w", "2", "-k", "asgi", ASGI), 2),
    "uvicorn workers": Setup((*UVICORN, "--workers", "2"), 2),
    "uvicorn reload": Setup((*UVICORN, "--reload", "--reload-dir", "tests/django/served")),
    "uvicorn, Ctrl-C": Setup(UVICORN, sent=INT, group=True),
    "daphne": Setup((*PYTHON, "daphne", "-p", "PORT", ASGI)),
    "daphne runserver": Setup((*MANAGE, "runserver", "PORT"), sent=INT, group=True, apps="daphne"),
    "granian asgi": Setup((*GRANIAN, "--interface", "asgi", "--workers", "2", ASGI), 2),
    "granian wsgi": Setup((*GRANIAN, "--interface", "wsgi", "--workers", "2", WSGI), 2),
    "hypercorn": Setup((*HYPERCORN, ASGI)),
    "hypercorn workers": Setup((*HYPERCORN, "-w", "2", ASGI), 2),
    "hypercorn wsgi": Setup((*HYPERCORN, f"wsgi:{WSGI}")),
    "uwsgi": Setup((*UWSGI, "--master", "--processes", "2", "--die-on-term", "--module", WSGI), 2),
    "uwsgi lazy-apps": Setup((*UWSGI, "--master", "--processes", "2", "--lazy-apps", "--module", WSGI), 2, sent=QUIT),
    "uwsgi without a master": Setup((*UWSGI, "--module", WSGI), sent=INT),
    "waitress, Ctrl-C": Setup(SHORT["waitress"].command, sent=INT, group=True),
}


async def served(setup: Setup, folder: Path, ticks: int, path: str = "") -> None:
    """Each tick makes one run, and a usual stop gives the run in hand back at once."""
    grace = "60" if "gunicorn" in setup.command else "0.5"  # longer than gunicorn waits for its workers
    async with Site(folder, *setup.command, path=path, SERVED_APPS=setup.apps, ROTA_GRACE=grace) as site:
        await site.workers(setup.processes)
        nominal = await site.ticks(ticks)
        steps = [round(later - earlier, 3) for earlier, later in pairwise(nominal)]
        assert set(steps) == {1.0}, f"a tick made no run, or two: {steps}\n{site.log}"
        started = re.findall(r"the engine starts in this process \(pid (\d+)\)", site.log)
        assert len(set(started)) == setup.processes, site.log
        run = await site.lingering()
        site.stop(setup.sent, setup.group)
        assert await site.state(run) is State.QUEUED, site.log
        assert "did not stop well" not in site.log
        assert "SIGKILL" not in site.log, "the stop ends before gunicorn's patience does"


@requirement("2.6")
@pytest.mark.parametrize("name", SHORT)
async def test_an_engine_in_each_process_that_serves(name: str, tmp_path: Path) -> None:
    await served(SHORT[name], tmp_path, 2)


async def hanging(setup: Setup, folder: Path, path: str = "") -> None:
    """A request that does not end keeps no run from being given back."""
    async with Site(folder, *setup.command, path=path, ROTA_GRACE="0.5") as site:
        await site.asked("/hang", "a request hangs")
        run = await site.lingering()
        site.process.send_signal(setup.sent)
        await site.given_back(run)


async def test_the_engine_ends_with_the_signal_and_not_with_the_last_request(tmp_path: Path) -> None:
    await hanging(SHORT["uvicorn"], tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["gunicorn gthread", "gunicorn asgi", "granian asgi", "uvicorn, Ctrl-C"])
async def test_the_engine_ends_with_the_signal_under_more_servers(name: str, tmp_path: Path) -> None:
    await hanging(LONG[name], tmp_path, more_servers())


@pytest.mark.soak
@pytest.mark.parametrize("name", [*SHORT, *LONG])
async def test_one_run_for_each_tick_under_every_server(name: str, tmp_path: Path) -> None:
    await served((SHORT | LONG)[name], tmp_path, 20, more_servers())
