"""Signs of life: what a worker tells systemd, and the file that `rota health` reads."""

import asyncio
import signal
import socket
import time
from pathlib import Path

import pytest

from rota.cli.serve.health import check
from rota.cli.worker.signs import Manager, signs_of_life, word_of, write_sign
from tests.surfaces.project import Project, sentence


class Engine:
    def __init__(self, live: bool = True, healthy: bool = True) -> None:
        self.live, self._healthy = live, healthy
        self.asked = asyncio.Event()

    @property
    def healthy(self) -> bool:
        self.asked.set()
        return self._healthy

    @healthy.setter
    def healthy(self, value: bool) -> None:
        self._healthy = value


@pytest.fixture
def manager(tmp_path: Path) -> socket.socket:
    """A service manager that listens."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    found.bind(str(tmp_path / "notify"))
    found.settimeout(60)
    return found


def heard(manager: socket.socket) -> str:
    return manager.recv(1000).decode()


def test_systemd_hears_of_start_work_and_stop(project: Project, manager: socket.socket, tmp_path: Path) -> None:
    env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"}
    sign = tmp_path / "sign"
    with manager, project.start("worker", "--health-file", str(sign), **env) as worker:
        assert heard(manager) == "READY=1\nSTATUS=working"
        assert [heard(manager) for _ in range(3)] == ["STATUS=working", "WATCHDOG=1", "WATCHDOG=1"]
        assert check([f"file:{sign}"]) == 0
        worker.send_signal(signal.SIGTERM)
        while (word := heard(manager)) == "WATCHDOG=1":
            continue
        assert word == "STOPPING=1\nSTATUS=stopping"
        worker.communicate(timeout=60)
    assert (worker.returncode, sign.exists()) == (0, False)


async def test_a_stuck_engine_gives_no_sign(
    manager: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    engine, loop = Engine(), asyncio.get_running_loop()
    manager.setblocking(False)
    with manager:

        async def hear() -> str:
            return (await loop.sock_recv(manager, 1000)).decode()

        async with signs_of_life(lambda: engine, asyncio.Event()):
            assert [await hear() for _ in range(3)] == ["READY=1\nSTATUS=working", "STATUS=working", "WATCHDOG=1"]
            engine.healthy = False
            while (word := await hear()) == "WATCHDOG=1":
                continue
            assert word == "STATUS=waiting for the store"  # and still live: a new start would not help
            engine.live = False
            engine.asked.clear()
            await engine.asked.wait()
            while unheard(manager) is not None:
                continue
            engine.asked.clear()
            await engine.asked.wait()  # the engine was asked again, and nobody was told
            assert unheard(manager) is None


def unheard(manager: socket.socket) -> bytes | None:
    """What was told and not heard yet, None if nothing was."""
    try:
        return manager.recv(1000)
    except BlockingIOError:
        return None


def test_the_manager_is_told_only_if_there_is_one() -> None:
    assert not Manager({})
    Manager({}).send(READY=1)
    Manager({"NOTIFY_SOCKET": "/nowhere"}).send(READY=1)
    assert Manager({"NOTIFY_SOCKET": "@rota", "WATCHDOG_USEC": "4000000"}).beat == 2
    assert Manager({"NOTIFY_SOCKET": "@rota", "WATCHDOG_USEC": "4000000", "WATCHDOG_PID": "1"}).beat == 5
    assert [word_of(engine) for engine in (None, Engine(), Engine(healthy=False), Engine(False, False))] == [
        "ready",
        "ready",
        "live",
        "stuck",
    ]


def test_health_judges_the_file_of_a_worker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sign = tmp_path / "sign"
    assert check([f"file:{sign}"]) == 1
    write_sign(sign, "live")
    assert (check([f"file:{sign}"]), check(["--live", f"file:{sign}"])) == (1, 0)
    write_sign(sign, "ready")
    assert (check([f"file:{sign}"]), check([f"file:{sign}", "--live"])) == (0, 0)
    sign.write_text(f"ready {time.monotonic() - 100}")
    assert check(["--live", f"file:{sign}"]) == 1
    sign.write_text(f"ready {time.monotonic() + 100}")  # from before the machine was started again
    assert check([f"file:{sign}"]) == 1
    assert "100 s old: the worker is stuck or dead" in capsys.readouterr().err


def test_a_sign_is_fresh_within_the_millisecond_in_which_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0006)
    write_sign(tmp_path / "sign", "ready")
    assert check([f"file:{tmp_path / 'sign'}"]) == 0


def test_a_health_file_is_of_one_process_and_of_a_folder_that_exists(project: Project) -> None:
    said = sentence(project.rota("worker", "--processes", "2", "--health-file", "/tmp/x"), code=2)
    assert "--health-file is of one process" in said
    assert "No such file" in sentence(project.rota("worker", "--health-file", "/nowhere/x"), code=2)
