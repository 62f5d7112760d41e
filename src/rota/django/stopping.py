"""Stopping: how the engine of a serving process ends: by the server's lifespan, by SIGTERM, or with the process."""

import logging
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rota.app.servers import hear_first
from rota.django.servers import Server

log = logging.getLogger("rota.django")


class _Stop:
    """The stop of one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.begun = threading.Event()
        self.closing = False
        self.heard = False
        """Whether the end of the engine has begun with a signal, before that of the app."""
        self.ended = threading.Event()
        self.lock = threading.Lock()


_stop = _Stop()


def _here() -> _Stop:
    global _stop
    if _stop.pid != os.getpid():  # forked: the parent's stop is not ours
        _stop = _Stop()
    return _stop


def begun() -> threading.Event:
    """Return the event that is set once the stop of this process has begun."""
    return _here().begun


def prepare(server: Server) -> None:
    """Hear of the stop in time, where neither the lifespan nor the end of the process says so."""
    if server.worker is not None:
        hear_gunicorn(server.worker)
        hear_first(stop_soon)
    if threading.current_thread() is not threading.main_thread():
        return  # Python takes handlers of signals from the main thread only; the end of the process stops the engine
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)


def stop() -> None:
    """Stop the engine and wait for its end; from any thread. A second call waits for the first."""
    here = _here()
    here.begun.set()
    with here.lock:
        first, here.closing = not here.closing, True
    if first:
        try:
            _stop_app()
        finally:
            here.ended.set()
    here.ended.wait()


def stop_soon() -> None:
    """Begin to end the engine on a thread; whoever stops it next waits for that thread. The store stays open: requests
    that are under way may enqueue."""
    here = _here()
    if not here.begun.is_set():
        here.heard = True
        here.begun.set()
        threading.Thread(target=_end_engine, name="rota-stop", daemon=True).start()


def _end_engine() -> None:
    from rota.app.core import core_of
    from rota.django.project import app

    try:
        core_of(app()).lifecycle.end_sync()
    except Exception:
        log.exception("the engine did not stop well")


def _stop_app() -> None:
    from rota.app.core import core_of
    from rota.django.project import app

    rota = app()
    if core_of(rota).lifecycle.engine is None and not _here().heard:
        return
    try:
        rota.stop_sync()
    except Exception:
        log.exception("the engine did not stop well")


def hear_gunicorn(worker: Any) -> None:
    """Begin to stop when gunicorn does: its worker first lets its requests end, and the same clock runs for both.

    With --preload, gunicorn makes `worker.handle_exit` the handler of SIGTERM after it has loaded the site; without, it
    has done so before, see `prepare`.
    """
    plain = getattr(worker, "handle_exit", None)
    if plain is None or getattr(plain, "rota", False):
        return

    def handle_exit(number: int, frame: FrameType | None) -> None:
        stop_soon()
        plain(number, frame)

    handle_exit.rota = True  # type: ignore[attr-defined]
    worker.handle_exit = handle_exit


def _terminated(number: int, frame: FrameType | None) -> None:
    """Stop the engine before the process dies of SIGTERM, which no code of the server handles."""
    from rota.app.embedded import stop_and_die
    from rota.django.project import app

    stop_and_die([app()], stop, number)


@contextmanager
def forgotten() -> Generator[None]:
    """For tests: until the block ends, no stop has begun in this process."""
    global _stop
    before, _stop = _stop, _Stop()
    try:
        yield
    finally:
        _stop = before
