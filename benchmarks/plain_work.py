"""What plain work costs one tree of rota; `benchmarks.earlier` runs this file for two trees.

`python plain_work.py URL SERVER_PID RUNS LONE drain|fill`: it uses no name that an earlier tree may lack. The last line
of its output is JSON: microseconds of processor time per run, of this process and of the server.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from rota import Rota

CHUNK = 1000
WARM = 200
"""Runs that are submitted one by one before those that count: they compile what the server compiles once."""
SEATS = 100


def server_seconds(pid: int) -> float:
    """Seconds of processor time of the server so far: its process and its children, with all their threads."""
    if not pid:
        return 0.0
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(_seconds(process) for process in (str(pid), *children))


def _seconds(pid: str) -> float:
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


class Meter:
    """Microseconds per run of this process, and of the server."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.found: dict[str, tuple[float, float]] = {}

    def start(self) -> None:
        self._server, self._own = server_seconds(self._pid), time.process_time()

    def stop(self, name: str, runs: int) -> None:
        own, server = time.process_time() - self._own, server_seconds(self._pid) - self._server
        self.found[name] = (own / runs * 1e6, server / runs * 1e6)


async def measure(url: str, pid: int, runs: int, lone: int, drain: bool) -> dict[str, tuple[float, float]]:
    app = Rota(url, concurrency=SEATS)
    meter = Meter(pid)
    left, called = runs + lone + WARM, asyncio.Event()

    @app.task
    async def noop(i: int) -> None:
        nonlocal left
        left -= 1
        if left == runs:
            meter.start()
        elif not left:
            meter.stop("drain", runs)
            called.set()

    async with app.client():
        for i in range(WARM):
            await noop.submit(i)
        meter.start()
        for i in range(lone):
            await noop.submit(i)
        meter.stop("one by one", lone)
        meter.start()
        for first in range(0, runs, CHUNK):
            await app.submit_many([noop.bind(i) for i in range(first, first + CHUNK)])
        meter.stop("bulk", runs)
        if drain:
            async with app:
                await called.wait()
    return meter.found


if __name__ == "__main__":
    address, server, many, few, what = sys.argv[1:]
    print(json.dumps(asyncio.run(measure(address, int(server), int(many), int(few), what == "drain"))))
