"""rota for a harness that measures many queues by one contract: it loads this file beside its own module `probe`.

The constants are literals because the harness reads them without importing the file.
"""

import asyncio
import signal
from datetime import UTC, datetime
from importlib import import_module

from rota import Rota

NOTES = "100 seats (10 in w8), lease 5 s (w8 waits for it; the default is 30 s); on SQLite an fsync per commit"
VARIANTS = {
    "rota-sqlite": {"BENCH_BACKEND": "sqlite"},
    "rota-memory": {"BENCH_BACKEND": "memory", "BENCH_INPROCESS": "1"},
}
UVLOOP = False

probe = import_module("probe")

app = Rota(
    "memory://" if probe.BACKEND == "memory" else f"sqlite:///{probe.SQLITE}",
    concurrency=probe.CONCURRENCY,
    lease=5.0,
)


@app.task
async def noop(i: int, payload: str = "") -> None:
    probe.noop(i, payload)


@app.task
async def nap(i: int) -> None:
    await probe.nap(i)


class Queue:
    async def open(self) -> None: ...

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
    asyncio.run(_until_terminated())


async def _until_terminated() -> None:
    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    async with app:
        await terminated.wait()
