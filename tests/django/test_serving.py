"""Which processes start an engine: those that serve, once, and they say why."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from django.core.signals import request_started
from django.core.wsgi import get_wsgi_application
from django.test import override_settings

import rota.django
from rota.app import embedded
from rota.app.core import core_of
from rota.django import serving, stopping
from rota.django.servers import Server
from tests.django.served.site import ROOT
from tests.requirement import requirement

COMMANDS = """
import os, sys, threading
import django
from django.core.management import call_command

django.setup()
before = set(os.listdir("/proc/self/fd"))
call_command("check")
call_command("migrate", verbosity=0)
call_command("shell", command="pass", verbosity=0)
call_command("test", "tests.django.served.live", verbosity=0)
print([thread.name for thread in threading.enumerate()])
print([os.readlink(f"/proc/self/fd/{each}") for each in set(os.listdir("/proc/self/fd")) - before
       if os.path.exists(f"/proc/self/fd/{each}")])
"""


@pytest.fixture
def fresh() -> Iterator[None]:
    """This process has decided nothing, and nothing that it starts works for long."""
    with serving.forgotten(), override_settings(ROTA={"URL": "memory://", "EMBEDDED": False}):
        yield


@requirement("2.6")
def test_no_command_and_no_test_starts_anything(tmp_path: Path) -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.django.served.settings", "SERVED_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    threads, files = done.stdout.splitlines()[-2:]
    assert threads == "['MainThread']"
    assert "rota" not in files
    assert not (tmp_path / ".rota").exists()
    assert "the engine starts" not in done.stderr


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("build", [get_wsgi_application, get_asgi_application])
def test_a_handler_decides_once_and_says_why_not(build: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rota.django")
    build()
    build()
    assert [record.getMessage() for record in caplog.records] == [
        f'no engine in this process (pid {os.getpid()}): ROTA["EMBEDDED"] is False'
    ]


@pytest.mark.usefixtures("fresh")
def test_the_first_request_is_enough(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rota.django")
    request_started.send(None, environ={})
    assert serving.state() == "undecided", "no server has loaded the site"
    get_wsgi_application()
    serving.forget_decision()  # as in the child of a server that forks without telling Python
    caplog.clear()
    request_started.send(None, environ={})
    request_started.send(None, environ={})
    assert [record.getMessage() for record in caplog.records] == [
        f'no engine in this process (pid {os.getpid()}): ROTA["EMBEDDED"] is False'
    ]


class Uwsgi(ModuleType):
    """The module that uWSGI gives the processes that it starts."""

    def __init__(self, has_threads: int) -> None:
        super().__init__("uwsgi")
        self.has_threads = has_threads
        self.worker = 0
        self.calls: list[str] = []
        self.post_fork_hook: Callable[[], None] = lambda: self.calls.append("the project's own")

    def worker_id(self) -> int:
        return self.worker


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("has_threads", "rota", "why_not"),
    [
        (1, {"EMBEDDED": False}, 'ROTA["EMBEDDED"] is False'),
        (0, {"EMBEDDED": True}, "uwsgi runs no threads; start it with --enable-threads"),
    ],
)
def test_uwsgi_decides_in_its_workers_and_not_without_threads(
    has_threads: int,
    rota: dict[str, Any],
    why_not: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "rota.django")
    uwsgi = Uwsgi(has_threads)
    monkeypatch.setitem(sys.modules, "uwsgi", uwsgi)
    with override_settings(ROTA={"URL": "memory://", **rota}):
        get_wsgi_application()
        assert caplog.messages == [
            f"no engine in this process (pid {os.getpid()}): uWSGI loads the site here and serves it in its workers"
        ]
        uwsgi.post_fork_hook()
        assert (serving.state(), uwsgi.calls) == ("undecided", ["the project's own"]), "a mule serves nothing"
        uwsgi.worker = 1
        uwsgi.post_fork_hook()
    assert caplog.messages[1:] == [f"no engine in this process (pid {os.getpid()}): {why_not}"]
    assert len(uwsgi.calls) == 2


async def test_the_lifespan_stops_the_engine_and_other_scopes_pass() -> None:
    seen: list[str] = []
    received = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    async def receive() -> Any:
        return received.pop(0)

    async def send(message: Any) -> None:
        seen.append(message["type"])

    wrapped = rota.django.asgi(inner)
    with stopping.forgotten():
        await wrapped({"type": "http"}, receive, send)
        await asyncio.wait_for(wrapped({"type": "lifespan"}, receive, send), 30)
        assert stopping.begun().is_set()
    assert seen == ["http", "lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_gunicorn_tells_the_engine_of_its_end_before_its_requests_have_ended() -> None:
    class Worker:
        heard: list[int]

        def handle_exit(self, number: int, frame: object) -> None:
            self.heard.append(number)

    worker = Worker()
    worker.heard = []
    with stopping.forgotten():
        stopping.hear_gunicorn(worker)
        stopping.hear_gunicorn(worker)  # a second call changes nothing
        worker.handle_exit(15, None)
        stopping.stop()  # waits for the stop that the signal has begun
        assert worker.heard == [15]


def test_a_server_that_kills_limits_the_seconds_of_the_stop() -> None:
    app = rota.Rota("memory://")
    embedded.limit_grace(app, Server(grace=4.0).grace)
    embedded.limit_grace(app, 10.0)
    assert core_of(app).tuning.grace == 4.0
