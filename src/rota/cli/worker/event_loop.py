"""The event loop of a command that runs until a signal comes. uvloop spends less time on sockets than asyncio."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Any, Literal, TypeVar

from rota.errors import MissingExtra

T = TypeVar("T")
LoopKind = Literal["auto", "asyncio", "uvloop"]


def run_on(kind: LoopKind, work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end and return its result, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=_factory(kind)) as runner:
        return runner.run(work)


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Wait until one of `works` has ended, and cancel the others. Raises what the first one raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        task.result()


def check_loop(kind: LoopKind) -> None:
    if kind == "uvloop" and find_spec("uvloop") is None:
        raise MissingExtra('--loop uvloop: it is not installed: pip install "rota[uvloop]"')


def _factory(kind: LoopKind) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if kind == "asyncio" or find_spec("uvloop") is None:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    return factory


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
