"""The processes of a chaos run: workers and submitters, each replaced as soon as it has ended."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.chaos import history
from tests.chaos.places import Place

PATIENCE = 60.0
"""Seconds that a process may take to end after SIGTERM."""
READY = re.compile("rota worker: |submitter is ready")
"""What a worker or a submitter prints as soon as SIGTERM ends it in its own way."""
LEASE = 2.0
SEATS = 8


class Member:
    """One process. Its output goes to a file of the run's folder."""

    def __init__(self, name: str, command: list[str], env: dict[str, str], log: Path) -> None:
        self.name = name
        self._command = command
        self._env = {**os.environ, **env, "PYTHONUNBUFFERED": "1"}
        self._log = log
        self.frozen = False
        self.start()

    def start(self) -> None:
        self.frozen = False
        self._said_before = len(self.log)
        with self._log.open("ab") as output:
            self._child = subprocess.Popen(
                [sys.executable, *self._command],
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        self._child.send_signal(signal.SIGKILL)
        self._child.wait()

    def kill_renewer(self) -> None:
        """End the small process that renews the leases of this worker while its interpreter is held."""
        for pid in _children(self._child.pid):
            if b"renewer" in _command_line(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def freeze(self) -> None:
        """Returns when every thread has stopped: one that waits for the disk stops only when it is back."""
        self._child.send_signal(signal.SIGSTOP)
        self.frozen = True
        deadline = time.monotonic() + 1.0
        while set(_states(self._child.pid)) - {"T"} and time.monotonic() < deadline:
            time.sleep(0.001)

    def thaw(self) -> None:
        self._child.send_signal(signal.SIGCONT)
        self.frozen = False

    @property
    def ended(self) -> bool:
        return self._child.poll() is not None

    def end(self, pause: Callable[[float], None] = time.sleep) -> int:
        """The exit code after SIGTERM; -1 if the process does not end in time. `pause` waits between two looks.

        A process that still starts has nothing in hand: the signal may end it, or a store that is away.
        """
        started = self.has_started
        self._child.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while (code := self._child.poll()) is None:
            if time.monotonic() > deadline:
                self.kill()
                return -1
            pause(0.02)
        return code if started else 0

    @property
    def has_started(self) -> bool:
        return READY.search(self.log, self._said_before) is not None

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


class Crew:
    def __init__(self, place: Place, folder: Path, workers: int, submitters: int, seed: int) -> None:
        env = {
            "ROTA_URL": place.url,
            "ROTA_KEEP_MOST": "1000000",
            history.FOLDER: str(folder / "history"),
        }
        worker = ["-m", "rota", "-A", "tests.chaos.tasks:app", "worker", "--lease", str(LEASE)]
        worker += ["--concurrency", str(SEATS), "--grace", "1"]
        self.workers = [Member(f"worker {n}", worker, env, folder / f"worker-{n}.log") for n in range(workers)]
        self.submitters = [
            Member(
                f"submitter {n}",
                ["-m", "tests.chaos.submitter", str(seed * 1000 + n)],
                env,
                folder / f"submitter-{n}.log",
            )
            for n in range(submitters)
        ]

    @property
    def everybody(self) -> list[Member]:
        return [*self.workers, *self.submitters]

    def close(self) -> None:
        """End everything, whatever state it is in."""
        for member in self.everybody:
            if not member.ended:
                member.kill()


def _states(pid: int) -> list[str]:
    """The state of each thread of a process, as the kernel names it."""
    try:
        stats = [place.read_text() for place in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # a thread or the process has ended
        return []
    return [stat.rpartition(")")[2].split()[0] for stat in stats]


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # the process has ended
        return []


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def left_behind(folder: Path, seconds: float = 10.0) -> list[int]:
    """The processes that outlive the crew of this folder: a killed worker's children must end by themselves."""
    deadline = time.monotonic() + seconds
    while (pids := _processes_of(folder)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return pids


def _processes_of(folder: Path) -> list[int]:
    mark = f"{history.FOLDER}={folder / 'history'}".encode()
    pids: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            environment, state = (place / "environ").read_bytes(), (place / "stat").read_text().rpartition(")")[2]
        except OSError:  # the process has ended, or belongs to somebody else
            continue
        if mark in environment.split(b"\0") and int(place.name) != os.getpid() and state.split()[0] != "Z":
            pids.append(int(place.name))
    return pids
