"""rota for a harness that measures many queues by one contract: it loads this file beside its own module `probe`.

The constants are literals because the harness reads them without importing the file.
"""

import asyncio
import signal
import time
from datetime import UTC, datetime
from importlib import import_module

import uvloop

from rota import Rota

NOTES = "uvloop; 100 seats (10 in w8); lease 30 s (5 s in w8, which waits for it); on SQLite an fsync per commit"
VARIANTS = {
    "rota-redis": {"BENCH_BACKEND": "redis"},
    "rota-postgres": {"BENCH_BACKEND": "postgres"},
    "rota-sqlite": {"BENCH_BACKEND": "sqlite"},
    "rota-memory": {"BENCH_BACKEND": "memory", "BENCH_INPROCESS": "1"},
}
UVLOOP = True

probe = import_module("probe")

URLS = {
    "memory": "memory://",
    "sqlite": f"sqlite:///{probe.SQLITE}",
    "redis": probe.REDIS_URL,
    "postgres": probe.PG_DSN,
}

app = Rota(URLS[probe.BACKEND], concurrency=probe.CONCURRENCY, lease=30.0 if probe.CONCURRENCY == 100 else 5.0)


@app.task
async def noop(i: int, payload: str = "") -> None:
    probe.noop(i, payload)


@app.task
async def nap(i: int) -> None:
    await probe.nap(i)


@app.task
async def tick(k: int) -> None:
    probe.tick(k)


async def init() -> None:
    """The first to open a store makes its schema."""
    async with app.client():
        pass


class Queue:
    async def open(self) -> None:
        await app.client().__aenter__()

    async def close(self) -> None:
        await app.stop()

    async def put(self, i: int, payload: str = "") -> None:
        await noop.submit(i, payload)

    async def put_many(self, ids: range, payload: str = "") -> None:
        await app.submit_many([noop.bind(i, payload) for i in ids])

    async def put_at(self, i: int, when: float) -> None:
        await noop.using(at=datetime.fromtimestamp(when, UTC)).submit(i)

    async def nap(self, i: int) -> None:
        await nap.submit(i)

    async def start(self) -> None:
        await app.start()


def work() -> None:
    uvloop.run(_until_terminated())


def schedules(count: int) -> None:
    uvloop.run(_until_terminated(count))


async def _until_terminated(count: int = 0) -> None:
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    async with app:
        if count:
            began = time.perf_counter()
            await app.schedules.put_many([(f"s{k}", "* * * * *", tick.bind(k)) for k in range(count)])
            probe.registered(time.perf_counter() - began)
        await terminated.wait()
