"""Servers: what an embedded engine has to know of the web server around it, and how it hears first of the server's end.

A server that is told to stop lets its requests end before it tells the application. A request may take long, and a
stream of events never ends: an engine that waited for them would go on claiming until the process is killed.
"""

import inspect
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

MARGIN = 5.0
"""Seconds between the end of our stop and the moment at which gunicorn kills its worker."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


def stack() -> Iterator[FrameType]:
    """Yield the frames of this thread, the innermost first."""
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def gunicorn_worker() -> Any:
    """Return the worker of gunicorn on whose call stack this code runs; None under another server."""
    for frame in stack():
        if str(frame.f_globals.get("__name__", "")).startswith("gunicorn.workers."):
            return frame.f_locals.get("self")
    return None


def gunicorn_grace(worker: Any) -> float | None:
    """Return the most seconds that a stop may take before gunicorn kills the worker; None: as many as the settings
    say."""
    seconds = getattr(getattr(worker, "cfg", None), "graceful_timeout", None)
    return max(0.0, float(seconds) - MARGIN) if isinstance(seconds, int | float) else None


def hear_first(begin: Callable[[], object]) -> Callable[[], None]:
    """Call `begin` at each SIGTERM and SIGINT that a server handles, before the server's own handler. Return what ends
    that.

    A signal that is left to its default is left alone. Python takes handlers of signals from the main thread only: on
    another thread nothing is heard.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    chained = [_chained(number, begin) for number in SIGNALS]

    def hear_no_more() -> None:
        for unchain in chained:
            unchain()

    return hear_no_more


def _chained(number: signal.Signals, begin: Callable[[], object]) -> Callable[[], None]:
    plain = signal.getsignal(number)
    if not callable(plain) or plain is signal.default_int_handler:
        return lambda: None

    def heard(got: int, frame: FrameType | None) -> None:
        with suppress(RuntimeError):  # the loop is closed, or the process is ending and starts no thread
            begin()
        plain(got, frame)

    def unchain() -> None:
        if signal.getsignal(number) is heard:
            signal.signal(number, plain)

    signal.signal(number, heard)
    return unchain


@contextmanager
def heard_first(begin: Callable[[], object]) -> Generator[None]:
    """`hear_first`, until the block ends."""
    hear_no_more = hear_first(begin)
    try:
        yield
    finally:
        hear_no_more()
