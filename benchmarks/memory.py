"""A worker's memory does not grow with the queue: its peak with few runs queued, and with many."""

import asyncio
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import Cost
from benchmarks.settings import Settings
from rota import Rota

DONE = 900
"""Runs that the worker does before its memory is read."""


def make_app(url: str) -> Rota:
    app = Rota(url, concurrency=100)

    @app.task
    async def noop(i: int) -> None: ...

    return app


def memory(settings: Settings) -> list[Cost]:
    few, many = (_peak(depth) for depth in (settings.shallow, settings.deep))
    name = f"peak memory of a worker with {settings.deep:,} queued, beside {settings.shallow:,}"
    return [Cost(name, "MiB", [many], [few], goal=1.5)]


def _peak(depth: int) -> float:
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'rota.db'}"
        asyncio.run(_fill(url, depth))
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", url], capture_output=True, text=True, check=True
        )
    return float(done.stdout)


async def _fill(url: str, depth: int) -> None:
    app = make_app(url)
    async with app.client():
        for _ in range(0, depth, 1000):
            await app.submit_many([app.tasks["noop"].bind(i) for i in range(1000)])


async def _work(url: str) -> None:
    app = make_app(url)
    done = 0
    enough = asyncio.Event()

    def count(_: object) -> None:
        nonlocal done
        done += 1
        if done >= DONE:
            enough.set()

    app.on("succeeded", count)
    async with app:
        await enough.wait()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1]))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
