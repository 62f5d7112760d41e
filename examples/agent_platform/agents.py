"""The agents, in place of real ones: an HTTP server that remembers each call."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self


class Asked(NamedTuple):
    agent: str
    message: str
    key: str
    """The Idempotency-Key: the id of the run."""


class Agents:
    """Serve while this is open. `asked` has every call; `until(holds)` waits for calls."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._news = threading.Condition()
        agents = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                _, _, agent, _ = self.path.split("/")
                agents.hear(Asked(agent, body["message"], self.headers["Idempotency-Key"]))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b'{"answer": "done"}')

            def log_message(self, format: str, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def hear(self, asked: Asked) -> None:
        with self._news:
            self.asked.append(asked)
            self._news.notify_all()

    def until(self, holds: Callable[[list[Asked]], bool], seconds: float = 60.0) -> None:
        with self._news:
            if not self._news.wait_for(lambda: holds(self.asked), seconds):
                raise TimeoutError(f"the agents were asked {len(self.asked)} times, and waited for more")

    def more(self, count: int) -> None:
        """Wait for `count` more calls."""
        wanted = len(self.asked) + count
        self.until(lambda asked: len(asked) >= wanted)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, name="agents", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
