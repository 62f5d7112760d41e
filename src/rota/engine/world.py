"""World: what an engine takes from the process around it. A simulation gives it another."""

import time
from collections.abc import Callable

from msgspec import Struct

from rota.engine.handler import Handler


def _as_it_is(handler: Handler) -> Handler:
    return handler


class World(Struct, frozen=True, kw_only=True):
    """In the real world time passes by itself and threads run beside the loop."""

    monotonic: Callable[[], float] = time.monotonic
    stopwatch: Callable[[], float] = time.perf_counter
    threads: bool = True
    """May heart and watchdog have threads? If not, the heart beats on the engine's loop, and nobody watches it."""
    adapt: Callable[[Handler], Handler] = _as_it_is
    """How a task is called here."""


REAL = World()
