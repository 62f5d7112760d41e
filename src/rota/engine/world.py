"""World: the clock, threads and calls that an engine uses. A simulation replaces them."""

import time
from collections.abc import Callable

from msgspec import Struct

from rota.engine.handler import Handler


def _nothing() -> None:
    return None


def _as_it_is(handler: Handler) -> Handler:
    return handler


class World(Struct, frozen=True, kw_only=True):
    """The defaults are those of the real world."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    """The clock of this host, which may be wrong."""
    stopwatch: Callable[[], float] = time.perf_counter
    threads: bool = True
    """Whether the heart and the watchdog have threads. Without, the heart beats on the engine's loop."""
    thread_ends: Callable[[], None] = _nothing
    """Called in each thread of plain handlers, when it ends."""
    adapt: Callable[[Handler], Handler] = _as_it_is
    """Changes how a handler is called."""


REAL = World()
