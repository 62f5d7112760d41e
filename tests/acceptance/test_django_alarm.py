"""Rows of the third source document, walked through `examples/django_alarm`: in the web process, with a watchdog."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.processes import Process
from tests.requirement import requirement

ROOT = Path(__file__).parents[2]


@requirement("2.7")
def test_2_7_the_example_lists_its_tasks_and_runs_one_by_hand() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.django_alarm"], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-2:] == ["2", "left: 1 days ago"]
    listed = [line.split("\t")[0] for line in lines if "\t" in line]
    assert {"cleanup_old_events", "look_around", "weekly_report"} <= set(listed)


SERVERS = {
    "runserver": ("-m", "examples.django_alarm", "serve", "127.0.0.1:PORT"),
    "gunicorn": ("-m", "gunicorn", "-b", "127.0.0.1:PORT", "--no-control-socket", "examples.django_alarm.wsgi"),
    "uvicorn": ("-m", "uvicorn", "--port", "PORT", "examples.django_alarm.asgi:application"),
}


@requirement("2.6")
@requirement("2.9")
@pytest.mark.parametrize("server", SERVERS)
def test_2_9_the_site_serves_its_status_and_its_engine_starts_with_it(
    server: str, tmp_path: Path, unused_tcp_port: int
) -> None:
    settings = "examples.django_alarm.settings"  # the tests of Django leave another name in this process
    env = {"ALARM_DIR": str(tmp_path), "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": settings}
    if server != "runserver":  # as the README says
        migrate = [sys.executable, "-m", "examples.django_alarm.manage", "migrate", "--verbosity", "0"]
        subprocess.run(migrate, cwd=ROOT, env={**os.environ, **env}, check=True, timeout=100)
    words = [word.replace("PORT", str(unused_tcp_port)) for word in SERVERS[server]]
    with Process(*words, env=env) as site:
        site.wait_for("scheduled cleanup_old_events: daily 03:00")
        site.wait_for("started on sqlite:")
        status: dict[str, Any] = {"loops": []}
        while not status["loops"]:  # the engine says that it has started a moment before the app knows
            try:
                with urlopen(f"http://127.0.0.1:{unused_tcp_port}/") as answer:
                    status = json.load(answer)
            except URLError:  # the engine may be there before the server listens
                os.sched_yield()
        assert {loop["name"] for loop in status["loops"]} >= {"worker", "ticks"}
        assert status["tasks"]["cleanup_old_events"]["running"] == 0
        with urlopen(f"http://127.0.0.1:{unused_tcp_port}/status") as answer:
            assert json.load(answer)["tasks"] == status["tasks"]
        site.signal(signal.SIGTERM)
        site.wait_for("worker rota-.* stopped")
        assert "cannot be swept" not in site.output, "the tables of the site are there"
