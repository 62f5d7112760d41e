"""Portal: a background event loop through which synchronous code uses what is async."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rota.errors import NotRunning

T = TypeVar("T")


class Portal:
    """Starts its thread when first used; a forked child gets one of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work()`, run on the background loop. Refused where it would block a running loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise NotRunning("an event loop runs here: await the async form instead of blocking it")

        async def run() -> T:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self._started()).result()

    def close(self, before: Callable[[], Awaitable[None]] | None = None) -> None:
        """End the thread; `before` is awaited there first."""
        if self._loop is None or self._thread is None or self._pid != os.getpid():
            return
        if before is not None:
            self.call(before)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop, self._thread = None, None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="rota-portal", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
