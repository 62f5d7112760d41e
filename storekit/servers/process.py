"""The process of a server. Orders go to the guard, which is its parent process."""

import json
import subprocess
import sys
import threading
from pathlib import Path

from storekit.servers import guard

PATIENCE = 30.0
"""Seconds that a server may take to answer or to end."""


class ServerFailed(RuntimeError):
    """A server did not do what a test needs. The message ends with the log of the server."""


class GuardedProcess:
    """A process that ends with the process that started it, however that one ends.

    `ending` is the signal that ends it fastest without leaving anything behind. The guard sends it when this process
    ends or calls `unregister`, and then removes `folder`. `account` is the user and group id it runs as; None for those
    of this process.
    """

    def __init__(self, command: list[str], folder: Path, log: Path, account: int | None, ending: int) -> None:
        self._lock = threading.Lock()
        self._log = log
        order = {
            "command": command,
            "folder": str(folder),
            "log": str(log),
            "account": account,
            "ending": int(ending),
        }
        with log.open("ab") as errors:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", guard.__file__, json.dumps(order)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,  # a Ctrl-C for the tests must not reach it before the tests have ended
            )
        self.pid = int(self._answer() or 0)
        if not self.pid:
            self.unregister()
            raise ServerFailed(f"{command[0]} could not be started.\n{self.log_tail()}")

    @property
    def running(self) -> bool:
        return self._guard.poll() is None

    def signal(self, number: int) -> None:
        self._order(f"signal {int(number)}")

    def kill(self) -> None:
        """Send SIGKILL to the process and its children, so that they cannot clean up."""
        self._order("kill")

    def freeze(self) -> None:
        self._order("freeze")

    def thaw(self) -> None:
        self._order("thaw")

    def wait(self) -> int:
        """Return the exit code, or 128 plus the signal that ended the process."""
        try:
            code = self._guard.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise ServerFailed(
                f"Process {self.pid} is still running after {PATIENCE:g} s.\n{self.log_tail()}"
            ) from None
        self.unregister()
        return code

    def unregister(self) -> None:
        """End the process if it runs, and remove its folder."""
        for pipe in (self._guard.stdin, self._guard.stdout):
            if pipe is not None:
                pipe.close()
        self._guard.wait()

    def log_tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-30:])

    def _order(self, words: str) -> None:
        with self._lock:
            try:
                assert self._guard.stdin is not None
                self._guard.stdin.write(words.encode())
                self._guard.stdin.flush()
                answer = self._answer()
            except (BrokenPipeError, ValueError):
                answer = ""
        if answer != "done":
            raise ServerFailed(f"Process {self.pid} has ended; it cannot be told to {words}.\n{self.log_tail()}")

    def _answer(self) -> str:
        assert self._guard.stdout is not None
        return self._guard.stdout.readline().decode().strip()
