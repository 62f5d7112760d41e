"""The processes of the platform: an API of several workers, and schedulers beside it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from examples.agent_platform.agents import Agents

ROOT = Path(__file__).parents[2]


class Platform:
    """Agents, and a store that the processes share. Everything ends with the block."""

    def __init__(self, url: str) -> None:
        self.agents = Agents()
        self._opened = ExitStack()
        self._environment = {
            **os.environ,
            "ROTA_URL": url,
            "ROTA_LEASE": "3",
            "AGENTS_URL": self.agents.url,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }

    def __enter__(self) -> Self:
        self._opened.enter_context(self.agents)
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def scheduler(self) -> "Service":
        """Start `rota serve`: a scheduler and worker with the API of rota."""
        return self._start(["-m", "rota", "-A", "examples.agent_platform.app:app", "serve", "--no-token", "--port"])

    def api(self, workers: int = 1, embedded: bool = False) -> "Service":
        """Start the API of the platform. `embedded`: with a scheduler in each of its processes."""
        module = [
            "-m",
            "uvicorn",
            "examples.agent_platform.api:api",
            "--log-level",
            "warning",
            "--workers",
            str(workers),
        ]
        return self._start([*module, "--port"], ROTA_ENABLED="true" if embedded else "false")

    def _start(self, command: Sequence[str], **environment: str) -> "Service":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process = subprocess.Popen(
            [sys.executable, *command, str(port)],
            env={**self._environment, **environment},
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that the workers of uvicorn end with it
        )
        service = Service(process, f"http://127.0.0.1:{port}")
        self._opened.callback(service.kill)
        return service


class Service:
    """A process that listens."""

    def __init__(self, process: "subprocess.Popen[bytes]", url: str) -> None:
        self.process, self.url = process, url

    def ready(self) -> Self:
        """Wait until the service answers."""
        command = [sys.executable, "-m", "rota", "health", "--live", self.url]
        while subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.process.args!r} ended with {self.process.returncode}")
        return self

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text.startswith((b"{", b"[")) else text.decode()

    def stop(self) -> None:
        """Stop as a service manager does."""
        self.process.terminate()
        self.process.wait(60)

    def kill(self) -> None:
        """Kill it, as the kernel does when there is no memory left."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
