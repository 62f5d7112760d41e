"""Real processes for tests: what they print is the signal to wait for; they end with the test."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Self

PATIENCE = 60.0
"""Seconds after which a line that did not come fails the test."""


class Process:
    """A child whose output (stdout and stderr together) is read line by line."""

    def __init__(self, *args: str, env: dict[str, str] | None = None) -> None:
        self.lines: list[str] = []
        self._new: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._child = subprocess.Popen(
            [sys.executable, *args],
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._child.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGKILL)
        self._child.wait()
        self._reader.join()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()

    def wait_for(self, pattern: str, times: int = 1) -> list[str]:
        """The first so many lines that match, among all that came and will come."""
        found = [line for line in self.lines if re.search(pattern, line)]
        deadline = time.monotonic() + PATIENCE
        while len(found) < times:
            try:
                line = self._new.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError(f"{len(found)} of {times} lines with {pattern!r} in:\n" + "".join(self.lines))
            self.lines.append(line)
            if re.search(pattern, line):
                found.append(line)
        return found[:times]

    def say(self, text: str) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(text + "\n")
        self._child.stdin.flush()

    @property
    def pid(self) -> int:
        return self._child.pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. After a SIGSTOP, all threads of the process stand still when this returns."""
        self._child.send_signal(number)
        if number is signal.SIGSTOP:
            os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        code = self._child.wait(PATIENCE)
        self._reader.join(PATIENCE)
        while (line := self._new.get()) is not None:
            self.lines.append(line)
        return code

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._new.put(line)
        self._new.put(None)
