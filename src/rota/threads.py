"""Threads that coroutines wait for without the help of another thread.

From Python 3.12 on, a process that ends starts no more threads, also not those of `asyncio.to_thread`. An engine that
stops with its process has to get along without.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class AwaitedThread(threading.Thread):
    """A daemon thread whose end the event loop that made it can await."""

    def __init__(self, target: Callable[[], object], name: str) -> None:
        super().__init__(target=target, name=name, daemon=True)
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()

    def run(self) -> None:
        try:
            super().run()
        finally:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._over.set)

    async def ended(self) -> None:
        await self._over.wait()
        self.join()  # what is left of it takes no time


async def called(function: Callable[[], T], name: str) -> T:
    """Return what `function` returns in a thread of its own. `asyncio.to_thread` would leave the loop with an executor,
    and the loop needs another thread to end that."""
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = AwaitedThread(call, name)
    thread.start()
    await thread.ended()
    if errors:
        raise errors[0]
    return results[0]
