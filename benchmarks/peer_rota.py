"""rota, as an application would use it."""

import asyncio
import signal

from benchmarks.stamps import Stamps
from rota import Rota

SEATS = 100


class RotaPeer:
    def __init__(self, url: str, stamps: Stamps) -> None:
        async def noop(i: int) -> None:
            stamps.mark(i)

        self._app = Rota(url, concurrency=SEATS)
        self._noop = self._app.task(noop)

    async def submit(self, i: int) -> None:
        await self._noop.submit(i)

    async def submit_many(self, ids: range) -> None:
        await self._app.submit_many([self._noop.bind(i) for i in ids])

    async def start(self) -> None:
        await self._app.start()

    async def stop(self) -> None:
        await self._app.stop()

    def work(self) -> None:
        asyncio.run(self._until_terminated())

    async def _until_terminated(self) -> None:
        terminated = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
        async with self._app:
            await terminated.wait()
