"""The roles of `rota serve`, its processes, and `rota health`."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from rota import Every, Rota, RunQuery
from rota.app.core import core_of
from tests.web.serving import Served, serving


def health(*words: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-m", "rota", "health", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


async def test_a_scheduler_fires_and_calls_nothing() -> None:
    app = Rota("memory://")

    @app.task(schedule=Every(seconds=0.1))
    async def tick() -> None:
        raise AssertionError("a scheduler calls no task")

    core_of(app).calls = False
    async with app:
        client = app.client()
        heard = await client.news(0)
        while not (found := (await client.runs(RunQuery(task="tick"))).runs):
            heard = await client.news(5, heard)
        assert (found[0].origin.kind, found[0].state) == ("schedule", "queued")


def listening(served: Served) -> int:
    """Return the pid of the next process that listens."""
    assert served.process.stderr is not None
    for line in served.process.stderr:
        if found := re.search(r"pid (\d+) listens", line):
            return int(found[1])
    raise AssertionError("it has ended")


def test_processes_share_a_port_and_are_replaced(tmp_path: Path) -> None:
    options = ("--role", "worker", "--processes", "2", "--no-token")
    with serving(tmp_path, f"sqlite:///{tmp_path}/rota.db", *options) as served:
        first, second = listening(served), listening(served)
        assert health(served.url) == (0, "ready\n")
        assert httpx.get(f"{served.url}/api/v1/me").status_code == 401, "a worker has no API"
        os.kill(first, signal.SIGKILL)
        assert listening(served) not in (first, second)
        served.process.terminate()
        assert served.process.wait(60) == 0
    assert health(served.url)[0] == 1


def test_health_is_cheap_and_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "rota.toml").write_text('app = "does_not_exist:app"\n')
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
        nobody.close()
        code, words = health(f"http://127.0.0.1:{port}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (code, "does not answer" in words) == (1, True)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.5, "without the command line and its packages; 0.04 s on an idle machine"
    assert health("ftp://x")[0] == 2
    assert health("--help")[0] == 0
