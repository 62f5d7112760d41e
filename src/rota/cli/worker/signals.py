"""Ctrl-C and SIGTERM for commands that run until a signal."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """The first signal sets `asked`; every further one calls `hurry`."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurry: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        if self.asked.is_set():
            self.hurry()
        self.asked.set()


@contextmanager
def stop_signals() -> Generator[Stop, None, None]:
    """While this is open, the signals call `Stop` instead of raising KeyboardInterrupt."""
    loop = asyncio.get_running_loop()
    stop = Stop()
    before = {number: signal.getsignal(number) for number in STOPPING}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    for number in STOPPING:
        try:
            # Also wakes a loop that sleeps while the kernel hands the signal to another thread.
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)
