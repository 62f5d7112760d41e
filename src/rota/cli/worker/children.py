"""Worker processes of a parent: start them, stop them, replace those that die."""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from rota.cli import STOPPED, USAGE, WORN
from rota.cli.options.target import Target
from rota.cli.worker.event_loop import Stop
from rota.domain.backoff import Backoff

log = logging.getLogger("rota")

FIRST_PAUSE, LAST_PAUSE = 0.1, 30.0
CALM = 60.0
"""Seconds of life after which a process is replaced with the first pause again."""


def worker_command(target: Target, *flags: str, **options: object) -> list[str]:
    """Return the command of a child: `rota worker` with the same target; the child ends with its parent."""
    words = [sys.executable, "-m", "rota", "worker", "--tethered", *flags]
    for name, value in {"app": target.given, "url": target.url, **options}.items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return words


class Child:
    """One worker process. It has its own process group, so that Ctrl-C reaches it once, through its parent."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    async def start(cls, command: Sequence[str]) -> Self:
        return cls(await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE, process_group=0))

    def terminate(self) -> None:
        """Ask the process to stop; a second call makes it stop without waiting for its handlers."""
        if self._process.returncode is None:
            self._process.terminate()

    async def ended(self) -> int:
        return await self._process.wait()


def graceful(code: int) -> bool:
    """Return whether the exit code means a graceful end. A process that SIGTERM kills had not begun to work."""
    return code in (0, -signal.SIGTERM)


def ending(code: int) -> str:
    """Return how a process ended, in words."""
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def hold_tether(on_parent_end: Callable[[], None]) -> None:
    """Call `on_parent_end` on this loop once the parent is gone: then standard input, a pipe from the parent, ends."""
    loop = asyncio.get_running_loop()

    def wait() -> None:
        while os.read(0, 1024):
            pass
        try:
            loop.call_soon_threadsafe(on_parent_end)
        except RuntimeError:  # the loop is closed: this process has ended
            return

    threading.Thread(target=wait, name="rota-tether", daemon=True).start()


class Children:
    """Several worker processes, until `stop` is asked or, with `burst`, until all have ended."""

    def __init__(self, command: Sequence[str], count: int, burst: bool, stop: Stop) -> None:
        self._command = command
        self._count = count
        self._burst = burst
        self._stop = stop
        self._children: dict[int, Child] = {}

    async def work(self) -> bool:
        """Run the processes; True if all of them ended gracefully."""
        self._stop.hurry = self._terminate_all
        stopping = asyncio.create_task(self._when_asked(), name="rota tells its workers")
        try:
            return all(await asyncio.gather(*(self._keep(place) for place in range(1, self._count + 1))))
        finally:
            stopping.cancel()

    async def _when_asked(self) -> None:
        await self._stop.asked.wait()
        log.info("stopping the worker processes: %d", len(self._children))
        self._terminate_all()

    def _terminate_all(self) -> None:
        for child in self._children.values():
            child.terminate()

    async def _keep(self, place: int) -> bool:
        """Keep one process running: start another whenever it dies."""
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        asked = self._stop.asked
        while not asked.is_set():
            began = time.monotonic()
            child = self._children[place] = await Child.start(self._command)
            log.info("process %d is pid %d", place, child.pid)
            if asked.is_set():  # asked during the start, before the child was in `_children`
                child.terminate()
            code = await child.ended()
            del self._children[place]
            if asked.is_set() or (self._burst and code == 0):
                return graceful(code)
            if code == USAGE:  # every other process would fail too
                log.error("process %d (pid %d) cannot work as it was asked to; stopping the others", place, child.pid)
                self._stop()
                return False
            if code == STOPPED:
                log.info("process %d (pid %d) was asked to stop; no other takes its place", place, child.pid)
                return True
            if code == WORN:
                log.info("process %d (pid %d) has done enough; another takes its place", place, child.pid)
                continue
            if time.monotonic() - began > CALM:
                backoff.reset()
            pause = backoff.pause()
            log.warning("process %d (pid %d) %s; another starts in %.1f s", place, child.pid, ending(code), pause)
            await either(asked, pause)
        return True


async def either(event: asyncio.Event, seconds: float | None) -> None:
    """Wait for `event`, at most `seconds`; None: for as long as it takes."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
