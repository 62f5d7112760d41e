"""Portal: a background event loop that runs async calls for synchronous code."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from rota.errors import NotRunning
from rota.forks import PerProcess

T = TypeVar("T")
stand_in: ContextVar[Callable[[Callable[[], Awaitable[Any]]], Any] | None] = ContextVar("rota portal", default=None)
"""Replaces the portal while a simulation calls a plain function on its own loop."""


class _Home:
    """The background loop of one process, if it has been started."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None

    def started(self) -> asyncio.AbstractEventLoop:
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            self.thread = threading.Thread(target=_serve, args=(self.loop,), name="rota-portal", daemon=True)
            self.thread.start()
        return self.loop

    def left(self) -> tuple[asyncio.AbstractEventLoop | None, threading.Thread | None]:
        """Give up the loop and return it with its thread; the next call starts another loop."""
        with self.lock:
            found = self.loop, self.thread
            self.loop, self.thread = None, None
        return found


class Portal:
    """Starts its thread on the first call. A forked child starts a thread of its own."""

    def __init__(self) -> None:
        self._home = PerProcess(_Home)

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work()` on the background loop and return its result. Raises NotRunning where an event loop runs: the
        call would block that loop."""
        instead = stand_in.get()
        if instead is not None:
            return instead(work)  # type: ignore[no-any-return]
        refuse_on_a_loop()

        async def run() -> T:
            return await work()

        home = self._home.get()
        with home.lock:  # a close comes before this call or after it, never between getting the loop and using it
            future = asyncio.run_coroutine_threadsafe(run(), home.started())
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise NotRunning("the app was stopped while this call waited") from None

    async def acall(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await `work()` on the background loop, from any other loop: short-lived loops share its open store."""
        if stand_in.get() is not None or self.here:
            return await work()

        async def run() -> T:
            return await work()

        home = self._home.get()
        with home.lock:
            future = asyncio.run_coroutine_threadsafe(run(), home.started())
        return await asyncio.wrap_future(future)

    @property
    def is_replaced(self) -> bool:
        """Does a simulation run the calls of the caller instead of this portal?"""
        return stand_in.get() is not None

    @property
    def here(self) -> bool:
        """Does the caller run on the background loop?"""
        try:
            return asyncio.get_running_loop() is self._home.get().loop
        except RuntimeError:
            return False

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """End the thread. Calls that are still waiting raise NotRunning; `last` is awaited at the end."""
        loop, thread = self._home.get().left()
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(_wind_up(last), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    async def leave(self, last: Callable[[], Awaitable[None]]) -> None:
        """End the thread from a call on the background loop itself, as soon as that call has returned its result."""
        self._home.get().left()
        loop, call = asyncio.get_running_loop(), asyncio.current_task()
        await _wind_up(last)
        if call is not None:  # runs after the callback that delivers the result, which was added earlier
            call.add_done_callback(lambda _: loop.stop())


def refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise NotRunning("an event loop runs here: await the async form instead of blocking it")


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
        with suppress(RuntimeError):  # at the end of the process, no thread can be started that would end the others
            loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
