"""The processes of an example, and stand-ins for the services that they call. Everything ends with its block."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

ROOT = Path(__file__).parents[1]
T = TypeVar("T")


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

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.url + path, data, sent, method=method)
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


class Services:
    """Processes with one environment."""

    def __init__(self, **environment: str) -> None:
        self._opened = ExitStack()
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._environment = {**os.environ, "PYTHONPATH": path, **environment}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def start(self, command: Sequence[str], **environment: str) -> Service:
        """Start a module of Python with a free port as its last argument."""
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

    def serve(self, api: str, workers: int = 1, **environment: str) -> Service:
        """Serve an ASGI application with uvicorn."""
        command = ["-m", "uvicorn", api, "--log-level", "warning", "--workers", str(workers), "--port"]
        return self.start(command, **environment)


class StandIn(Generic[T]):
    """An HTTP server in this process. `asked` has every call as `hear` reads it; `until(holds)` waits for calls."""

    def __init__(self, hear: Callable[[str, Any, Message], T], answer: Callable[[T], object]) -> None:
        """`hear(path, body, headers)` reads a call, `answer(call)` is sent back as JSON."""
        self.asked: list[T] = []
        self.news = threading.Condition()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                call = hear(self.path, body, self.headers)
                with stand_in.news:
                    stand_in.asked.append(call)
                    stand_in.news.notify_all()
                found = json.dumps(answer(call)).encode()
                try:
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(found)))
                    self.end_headers()
                    self.wfile.write(found)
                except OSError:  # whoever asked has gone
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def until(self, holds: Callable[[list[T]], bool], seconds: float = 60.0) -> None:
        with self.news:
            if not self.news.wait_for(lambda: holds(self.asked), seconds):
                raise TimeoutError(f"there were {len(self.asked)} calls, and more were waited for")

    def more(self, count: int) -> None:
        """Wait for `count` more calls."""
        wanted = len(self.asked) + count
        self.until(lambda asked: len(asked) >= wanted)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="stand-in", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
