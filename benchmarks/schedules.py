"""Schedules: adding many, many that are due at once, and the cost of very many that are not."""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.figures import Cost
from benchmarks.settings import Settings
from benchmarks.turns import fresh_url
from rota import Every, Rota, Task

SEATS = 100
AHEAD = 3.0
"""Seconds between the end of adding and the common tick."""


def schedules(settings: Settings, tell: Callable[[str], None] = lambda _: None) -> list[Cost]:
    found = due_at_once(settings)
    many = f"{settings.schedules:,}"
    tell(f"an idle {settings.idle:g} s with {many} schedules")
    idle = _idle(settings.schedules, settings.idle)
    return [*found, Cost(f"idle CPU with {many} schedules, beside 1 %", "%", [idle], [1.0], goal=1.0)]


def due_at_once(settings: Settings, server: str | None = None) -> list[Cost]:
    added, due, plain = [], [], []
    for _ in range(settings.rounds):
        with fresh_url(server) as url:
            plain.append(asyncio.run(_drain(url, settings.due)))
        with fresh_url(server) as url:
            add, fire = asyncio.run(_fire(url, settings.due))
        added.append(add)
        due.append(fire)
    count, most = f"{settings.due:,}", 1.0 if server is None else None
    return [
        Cost(f"add {count} schedules in one call, beside a second", "s", added, [1.0] * len(added), goal=most),
        Cost(
            f"{count} schedules due at once, until all have run, beside as many plain runs", "s", due, plain, goal=2.5
        ),
    ]


def make_app(url: str) -> tuple[Rota, Task[[], [], object, None]]:
    app = Rota(url, concurrency=SEATS)

    async def noop() -> None: ...

    return app, app.task(noop)


class Endings:
    def __init__(self, app: Rota, count: int) -> None:
        self._left = count
        self._all = asyncio.Event()
        app.on("succeeded", self._ended)

    async def _ended(self, _: object) -> None:
        self._left -= 1
        if not self._left:
            self._all.set()

    async def all(self) -> None:
        await self._all.wait()


async def _drain(url: str, count: int) -> float:
    app, noop = make_app(url)
    for _ in range(0, count, 1000):
        await app.submit_many([noop.bind() for _ in range(1000)])
    endings = Endings(app, count)
    began = time.perf_counter()
    async with app:
        await endings.all()
        return time.perf_counter() - began


async def _fire(url: str, count: int) -> tuple[float, float]:
    """Seconds to add them, and from their common tick until each has run."""
    app, noop = make_app(url)
    endings = Endings(app, count)
    tick = datetime.now(UTC) + timedelta(days=1)
    async with app:
        began = time.perf_counter()
        await app.schedules.put_many([(f"s{i}", Every(days=1, anchor=tick), noop.bind()) for i in range(count)])
        added = time.perf_counter() - began
        tick = datetime.now(UTC) + timedelta(seconds=AHEAD)
        await app.schedules.put_many([(f"s{i}", Every(days=1, anchor=tick), noop.bind()) for i in range(count)])
        await endings.all()
        return added, (datetime.now(UTC) - tick).total_seconds()


def _idle(count: int, seconds: float) -> float:
    """The CPU share of a worker process that has nothing to do, in percent."""
    with tempfile.TemporaryDirectory(prefix="rota-bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'rota.db'}"
        asyncio.run(_fill(url, count))
        command = [sys.executable, "-m", "benchmarks.schedules", url, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


async def _fill(url: str, count: int) -> None:
    app, noop = make_app(url)
    tick = datetime.now(UTC) + timedelta(days=1)
    async with app.client():
        for first in range(0, count, 10_000):
            each = range(first, min(count, first + 10_000))
            await app.schedules.put_many([(f"s{i}", Every(days=1, anchor=tick), noop.bind()) for i in each])


async def _wait(url: str, seconds: float) -> float:
    app, _ = make_app(url)
    async with app:
        await asyncio.sleep(10)  # what a start costs is not idleness
        before, began = _cpu(), time.perf_counter()
        await asyncio.sleep(seconds)
        return 100 * (_cpu() - before) / (time.perf_counter() - began)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(asyncio.run(_wait(sys.argv[1], float(sys.argv[2]))))
