"""Portal: a background event loop through which synchronous code uses what is async."""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from rota.errors import NotRunning

T = TypeVar("T")
stand_in: ContextVar[Callable[[Callable[[], Awaitable[Any]]], Any] | None] = ContextVar("rota portal", default=None)
"""Does the work of a portal where a simulation calls a plain function on its own loop."""


class Portal:
    """Starts its thread when first used; a forked child gets one of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work()`, run on the background loop. Refused where it would block a running loop."""
        instead = stand_in.get()
        if instead is not None:
            return instead(work)  # type: ignore[no-any-return]
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise NotRunning("an event loop runs here: await the async form instead of blocking it")

        async def run() -> T:
            return await work()

        with self._lock:  # a close comes before this call or after it, never between the loop and its work
            future = asyncio.run_coroutine_threadsafe(run(), self._started())
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise NotRunning("the app was stopped while this call waited") from None

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """End the thread. Calls that still wait are told; `last` is awaited there at the end."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop, self._thread = None, None
        if loop is not None and thread is not None and self._pid == os.getpid():
            asyncio.run_coroutine_threadsafe(_wind_up(last), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(self._loop,), name="rota-portal", daemon=True)
            self._thread.start()
        return self._loop


async def _wind_up(last: Callable[[], Awaitable[None]]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
