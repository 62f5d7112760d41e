"""What workers send to a Redis server while nothing is due, and for runs that come one by one: as the server sees."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.figures import Cost
from benchmarks.turns import fresh_url
from rota import Rota, Task
from rota.stores.redis.library import library
from storekit.servers import RedisServer

WORKERS = 100
PACE = 100
"""Submits per second."""
SETTLING = 6.0
"""Seconds until workers that have just started are idle."""
CLAIM = library().functions["claim"].encode()


class Tap:
    """Counts what clients send; what scripts call is not counted."""

    def __init__(self) -> None:
        self.commands = 0
        self.claims = 0

    async def read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            if b" lua] " not in line:
                self.commands += 1
                self.claims += CLAIM in line


@asynccontextmanager
async def tapped(server: RedisServer) -> AsyncIterator[Tap]:
    lines, out = await asyncio.open_connection("127.0.0.1", server.port, limit=2**24)
    out.write(b"MONITOR\r\n")
    await lines.readline()
    tap = Tap()
    reading = asyncio.create_task(tap.read(lines))
    try:
        yield tap
    finally:
        reading.cancel()
        out.close()


def traffic(server: RedisServer, seconds: float) -> list[Cost]:
    idle, claims = asyncio.run(_measure(server, seconds))
    crowd = f"{WORKERS} idle workers and {PACE} submits a second"
    return [
        Cost("commands a second of an idle worker, beside 0.3", "1/s", [idle], [0.3], goal=1.0),
        Cost(f"claims a second with {crowd}, beside 300", "1/s", [claims], [300.0], goal=1.0),
    ]


async def _measure(server: RedisServer, seconds: float) -> tuple[float, float]:
    with fresh_url(server.url) as url:
        tasks = [_task(Rota(url)) for _ in range(WORKERS)]
        async with AsyncExitStack() as running:
            for app, _ in tasks:
                await running.enter_async_context(app)
            await asyncio.sleep(SETTLING)
            async with tapped(server) as tap:
                await asyncio.sleep(seconds)
                idle = tap.commands / seconds / WORKERS
            async with tapped(server) as tap:
                for _ in range(int(seconds * PACE)):
                    await tasks[0][1].submit()
                    await asyncio.sleep(1 / PACE)
                claims = tap.claims / seconds
    return idle, claims


def _task(app: Rota) -> tuple[Rota, Task[[], [], object, None]]:
    async def noop() -> None: ...

    return app, app.task(noop)
