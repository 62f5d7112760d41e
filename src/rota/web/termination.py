"""Termination: a signal tells a server to stop. The engine hears it first, and not when the last request has ended.

A SIGTERM that the server leaves to its default is death. hypercorn with several workers sends it: when the first of
them has ended, the others are terminated, whatever they do.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from rota.app.app import Rota
from rota.app.core import core_of
from rota.app.servers import heard_first

log = logging.getLogger("rota.web")


@contextmanager
def stopped_first(app: Rota) -> Generator[None]:
    """Until the block ends, a SIGTERM or SIGINT that the server handles ends the engine and the streams of events on
    this event loop, while the server lets its requests end. A SIGTERM that nobody handles stops the app, and then the
    process dies of it. Where the event loop is not on the main thread, no signal is heard."""
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with _death_after(app):
            yield
        return
    loop, ending = asyncio.get_running_loop(), list[asyncio.Task[None]]()

    def begin() -> None:
        if not ending:
            _announce(app)
            ending.append(asyncio.create_task(_end(app), name="rota ends its engine"))

    with heard_first(lambda: loop.call_soon_threadsafe(begin)):
        yield


@contextmanager
def _death_after(app: Rota) -> Generator[None]:
    loop, dying = asyncio.get_running_loop(), list[asyncio.Task[None]]()

    async def die() -> None:
        try:
            await app.stop()
        finally:
            _die()

    def begin() -> None:
        if not dying:
            _announce(app)
            dying.append(asyncio.create_task(die(), name="rota stops, then dies of SIGTERM"))

    def terminated(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(begin)

    signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _announce(app: Rota) -> None:
    for each in list(core_of(app).on_termination):
        each()


async def _end(app: Rota) -> None:
    try:
        await core_of(app).lifecycle.end()
    except Exception:
        log.exception("the engine did not stop well")


def _die() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.raise_signal(signal.SIGTERM)
