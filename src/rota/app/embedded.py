"""Embedded engines: how a framework starts the engine of an app in a process that serves requests, and how a process
that dies of a signal stops it first."""

import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import Logger
from os import getpid
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rota.app.core import core_of
from rota.domain.backoff import Backoff
from rota.errors import StoreUnavailable

if TYPE_CHECKING:
    from rota.app.app import Rota

FIRST_PAUSE, LAST_PAUSE = 1.0, 30.0
"""Seconds between two tries to start an engine whose store does not answer."""
MARGIN = 5.0
"""Seconds beyond its grace that a stop may take before the process dies all the same."""


def start(app: "Rota", log: Logger, stopped: threading.Event, grace: float | None = None) -> None:
    """Start the engine; while the store does not answer, try again until `stopped` is set. Call this on a thread of its
    own.

    `grace`: the most seconds that a stop may take; with 0, it gives the runs back at once.
    """
    backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
    limit_grace(app, grace)
    while not stopped.is_set():
        try:
            app.start_sync()
        except StoreUnavailable as error:
            pause = backoff.pause()
            log.warning("the engine cannot start yet, next try in %.1f s: %s", pause, error)
            stopped.wait(pause)
        except Exception:
            log.exception("the engine cannot start in this process (pid %d)", getpid())
            return
        else:
            if grace == 0.0:
                give_back_at_once(app)
            if stopped.is_set():  # the stop came first and found nothing to stop
                with suppress(Exception):
                    app.stop_sync()
            return


def limit_grace(app: "Rota", grace: float | None) -> None:
    """Let no stop of the app take longer than `grace` seconds."""
    core = core_of(app)
    if grace is not None and grace < core.tuning.grace:
        core.tuning = replace(core.tuning, grace=grace)


def give_back_at_once(app: "Rota") -> None:
    """Let the stop of the engine give its runs back before their handlers have reacted."""
    engine = core_of(app).lifecycle.engine
    if engine is not None:
        engine.cleanup = False


def stop_and_die(apps: "Sequence[Rota]", stop: Callable[[], None], number: int) -> None:
    """In the handler of a signal: stop, then die of the signal. It may have interrupted anything, so the stop is on a
    thread, and the process waits no longer than the grace of its apps."""
    stopper = threading.Thread(target=stop, name="rota-stop", daemon=True)
    stopper.start()
    stopper.join(sum(core_of(app).tuning.grace for app in apps) + MARGIN)
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
