"""How near the drain of a Redis store comes to what the bare scripts do, and what two processes make of two cores."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.figures import Cost
from benchmarks.peer_rota import SEATS
from benchmarks.settings import Settings
from benchmarks.turns import fresh_url
from rota import Rota, Task
from rota.stores.redis.msgpack import pack
from rota.stores.redis.store import RedisStore

STARTED = 0.02


def shares(settings: Settings, server: str) -> list[Cost]:
    bare: list[float] = []
    one: list[float] = []
    two: list[float] = []
    busy: list[float] = []
    for _ in range(settings.rounds):
        with fresh_url(server) as url:
            bare.append(asyncio.run(_bare(url, settings.runs)))
        for workers, rates in ((1, one), (2, two)):
            with fresh_url(server) as url:
                rate, share = asyncio.run(_drain(url, settings.runs * workers, workers))
                rates.append(rate)
        busy.append(share)
    return [
        Cost("what the bare scripts drain, beside one process, runs", "1/s", bare, one),
        Cost("one process, beside two, runs", "1/s", one, two, goal=1 / 1.3),
        Cost("90 % of all cores, beside what two processes keep busy", "%", [90.0] * len(busy), busy, goal=1.0),
    ]


def _make(url: str) -> tuple[Rota, Task[[int], [int], object, None]]:
    app = Rota(url, concurrency=SEATS)

    async def noop(i: int) -> None: ...

    return app, app.task(noop)


async def _fill(app: Rota, noop: Task[[int], [int], object, None], runs: int) -> None:
    for first in range(0, runs, 1000):
        await app.submit_many([noop.bind(i) for i in range(first, first + 1000)])


async def _bare(url: str, runs: int) -> float:
    """Runs per second that claim and settle carry through, one after the other, with nothing done in between."""
    app, noop = _make(url)
    async with app.client():
        await _fill(app, noop, runs)
        store: Any = await app.client().store()
        assert isinstance(store, RedisStore)
        crew = ("bare", pack([noop.name]), b"[]")
        began, done, n = time.perf_counter(), 0, 0
        while done < runs:
            n += 1
            request = pack(["bare", n, crew[0], SEATS, 60.0, None, [], True])
            found = (await store.run("claim", request, *crew[1:]))[3]
            ids = [id.decode() for id in found[::4]]
            ending = [
                1,
                "bare",
                False,
                "succeeded",
                "none",
                False,
                True,
                True,
                "[0.0,null,[]]",
                "s",
                None,
                None,
                None,
                None,
            ]
            await store.run("settle", pack([[id, *ending] for id in ids]))
            done += len(ids)
        return done / (time.perf_counter() - began)


@contextmanager
def _workers(url: str, count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-m", "benchmarks.shares", url]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


async def _drain(url: str, runs: int, workers: int) -> tuple[float, float]:
    """Runs per second from the first ending to the last, and the busy share of all cores meanwhile, in percent."""
    app, noop = _make(url)
    async with app.client():
        await _fill(app, noop, runs)
        store = await app.client().store()
        with _workers(url, workers):
            left = runs
            while left == runs:
                left = await _left(store)
            first, began, ticks = left, time.perf_counter(), _ticks()
            while left:
                left = await _left(store)
            seconds, after = time.perf_counter() - began, _ticks()
    return first / seconds, 100 * (after[0] - ticks[0]) / (after[1] - ticks[1])


async def _left(store: Any) -> int:
    await asyncio.sleep(STARTED)
    return sum(depth.queued + depth.running for depth in (await store.depths()).items)


def _ticks() -> tuple[int, int]:
    """Of all cores: busy, and in all."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return sum(numbers) - numbers[3] - numbers[4], sum(numbers)


async def _work(url: str) -> None:
    app, _ = _make(url)
    async with app:
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1]))
