"""Termination: a SIGTERM that the server leaves to its default, which is death, first stops the engine.

hypercorn with several workers sends it: when the first of them has ended, the others are terminated, whatever they do.
"""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopped_first(stop: Callable[[], Awaitable[None]]) -> Generator[None]:
    """Until the block ends, a SIGTERM runs `stop` on this event loop, and then the process dies of it. A server that
    handles the signal itself goes on doing so; so does every process whose event loop is not on its main thread."""
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    loop, dying = asyncio.get_running_loop(), list[asyncio.Task[None]]()

    async def die() -> None:
        try:
            await stop()
        finally:
            _die()

    def begin() -> None:
        if not dying:
            dying.append(asyncio.create_task(die(), name="rota stops, then dies of SIGTERM"))

    def terminated(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(begin)

    signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _die() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.raise_signal(signal.SIGTERM)
