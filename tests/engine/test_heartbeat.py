"""The dead-man ping: a monitor hears of a rota that works, and of none that does not."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue

import pytest

from rota import InvalidOptions, Retry, Rota, State
from rota.app.heartbeat import HEARTBEAT
from rota.settings import load

SECRET = "8f2c"


class Monitor:
    def __init__(self) -> None:
        self.heard: Queue[str] = Queue()
        self.status = 200
        monitor = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                monitor.heard.put(self.path)
                self.send_response(monitor.status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/ping/{SECRET}"


@pytest.fixture
def monitor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    found = Monitor()
    monkeypatch.setenv("ROTA_HEARTBEAT_URL", found.url)
    monkeypatch.setenv("ROTA_HEARTBEAT_EVERY", "1")
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


async def test_the_monitor_is_called_while_rota_works(monitor: Monitor) -> None:
    app = Rota("memory://", http_hosts=["127.0.0.0/8"])
    async with app:
        run = await app.tasks[HEARTBEAT].submit()
        assert await run.result() == 200
    assert monitor.heard.get(timeout=5) == f"/ping/{SECRET}"
    (schedule,) = [schedule for schedule in await app.schedules.list() if schedule.task == HEARTBEAT]
    assert (schedule.trigger, schedule.catch_up) == ("every 1s", "skip")


async def test_a_monitor_that_refuses_is_a_failed_run_that_does_not_tell_the_secret(monitor: Monitor) -> None:
    monitor.status = 500
    app = Rota("memory://", http_hosts=["127.0.0.0/8"])
    async with app:
        run = await app.tasks[HEARTBEAT].using(retry=Retry(0)).submit()
        ended = await app.client().ended(run.id)
    assert ended.state is State.FAILED
    assert "answers 500" in str(ended.error)
    assert SECRET not in str(ended)
    assert SECRET not in repr(load())


async def test_an_address_that_is_not_public_has_to_be_listed(monitor: Monitor) -> None:
    app = Rota("memory://")
    async with app:
        ended = await app.client().ended((await app.tasks[HEARTBEAT].submit()).id)
    assert ended.state is State.FAILED
    assert "is not public" in str(ended.error)
    assert monitor.heard.empty()


def test_the_url_is_checked_when_the_app_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_HEARTBEAT_URL", "ftp://monitor/ping")
    with pytest.raises(InvalidOptions, match="heartbeat_url: write it as https"):
        Rota("memory://")
