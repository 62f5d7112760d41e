"""The extension: what `init_app` adds to a Flask app."""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, cast
from weakref import WeakSet

import click
from flask import Flask

from rota.app import embedded
from rota.app.app import Rota
from rota.app.core import core_of
from rota.app.servers import gunicorn_grace, gunicorn_worker, hear_first
from rota.errors import InvalidOptions
from rota.stores import connect

log = logging.getLogger("rota.flask")

RELOADED = "WERKZEUG_RUN_MAIN"
"""Set in the child of the reloader, which gets a quarter of a second to end after Ctrl-C: its runs are given back at
once."""

_engines: "WeakSet[Engine]" = WeakSet()
"""A process may make several Flask apps; one of them serves."""


def init_app(flask_app: Flask, app: Rota) -> None:
    """Join `app` to a Flask app: every handler runs in an application context of `flask_app`, the processes that serve
    `flask_app` run the engine, `flask rota …` is the command line, and `flask_app.extensions["rota"]` is `app`.

    `flask_app.config` may have `ROTA_URL`, the store, and `ROTA_EMBEDDED`: False keeps the engine out of web processes.
    With `TESTING` none starts either.
    """
    known = flask_app.extensions.get("rota")
    if known is app:
        return
    if known is not None:
        raise InvalidOptions("another app of rota is in this Flask app; a Flask app has one")
    flask_app.extensions["rota"] = app
    if (url := _config(flask_app).get("ROTA_URL")) is not None:
        core_of(app).use(connect(str(url)))

    @contextmanager
    def application_context() -> Generator[None]:
        context = flask_app.app_context()
        context.push()
        try:
            yield
        except GeneratorExit:  # the call is thrown away together with its loop, and its context variables with it
            raise
        except BaseException as error:
            context.pop(error)
            raise
        else:
            context.pop()

    core_of(app).registry.around[:] = [application_context]  # of the last factory call, if a process makes several
    engine = Engine(flask_app, app)
    flask_app.extensions["rota.engine"] = engine
    flask_app.wsgi_app = _FirstRequest(flask_app.wsgi_app, engine)  # type: ignore[method-assign]
    flask_app.cli.add_command(_command_line(app))
    hear_termination(engine)
    if (why := serving_here()) is not None:
        engine.start(why)


def _config(flask_app: Flask) -> Mapping[str, object]:
    return cast("Mapping[str, object]", flask_app.config)


def serving_here() -> str | None:
    """Return why this process is known to serve before its first request; None if it is not known.

    The child of the reloader serves, and its parent does not. `flask run` without a reloader serves. Every other
    command, a shell and the arbiter of gunicorn import the app too.
    """
    if os.environ.get(RELOADED) == "true":
        return "the reloader runs the server here"
    context = click.get_current_context(silent=True)
    if context is None or context.info_name != "run" or "reload" not in context.params:
        return None
    reload = context.params["reload"]
    debug = os.environ.get("FLASK_DEBUG", "").lower() not in ("", "0", "false", "no")
    return None if (debug if reload is None else reload) else "flask run serves here"


def hear_termination(engine: "Engine") -> None:
    """Let SIGTERM stop the engine before the process dies of it, where no server takes the signal over: under waitress,
    `flask run` and `app.run()`. Python takes handlers of signals from the main thread only."""
    _engines.add(engine)
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, frame: FrameType | None) -> None:
    serving = [engine for engine in _engines if engine.decided]

    def stop() -> None:
        for engine in serving:
            engine.stop()

    embedded.stop_and_die([engine.app for engine in serving], stop, number)


class Engine:
    """The engine of one Flask app in this process. A forked child decides anew."""

    def __init__(self, flask_app: Flask, app: Rota) -> None:
        self.app = app
        self._flask_app = flask_app
        self._decided = 0
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    @property
    def decided(self) -> bool:
        return self._decided == os.getpid()

    def start(self, why: str, worker: Any = None) -> None:
        """Start the engine on threads of its own, once per process; `why` goes to the log. `worker`: that of gunicorn,
        if this code does not run on its call stack."""
        with self._lock:
            if self.decided:
                return
            self._decided = os.getpid()
        config = _config(self._flask_app)
        if config.get("TESTING") or config.get("ROTA_EMBEDDED") is False:
            reason = "these are tests" if config.get("TESTING") else "ROTA_EMBEDDED is False"
            log.info("no engine in this process (pid %d): %s", os.getpid(), reason)
            return
        if not getattr(sys.modules.get("uwsgi"), "has_threads", True):
            log.warning(
                "no engine in this process (pid %d): uwsgi runs no threads; start it with --enable-threads", os.getpid()
            )
            return
        log.info("the engine starts in this process (pid %d): %s", os.getpid(), why)
        worker = worker or gunicorn_worker()
        if worker is not None:
            hear_first(self.end_soon)
        grace = 0.0 if os.environ.get(RELOADED) == "true" else gunicorn_grace(worker)
        words = (self.app, log, self._stopped, grace)
        threading.Thread(target=embedded.start, args=words, name="rota-start", daemon=True).start()

    def end_soon(self) -> None:
        """Begin to end the engine on a thread, while the worker of gunicorn lets its requests end: the clock of
        `--graceful-timeout` runs for both. The requests go on using the store."""
        if self.decided and not self._stopped.is_set():
            self._stopped.set()
            threading.Thread(target=core_of(self.app).lifecycle.end_sync, name="rota-stop", daemon=True).start()

    def stop(self) -> None:
        if self.decided:
            self._stopped.set()
            self.app.stop_sync()


class _FirstRequest:
    """The WSGI application; its first request in a process starts the engine there."""

    def __init__(self, inner: Callable[..., Iterable[bytes]], engine: Engine) -> None:
        self._inner = inner
        self._engine = engine

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not self._engine.decided:
            self._engine.start("a request came")
        return self._inner(environ, start_response)


def _command_line(app: Rota) -> click.Command:
    @click.command("rota", context_settings={"ignore_unknown_options": True, "help_option_names": []})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def command(words: tuple[str, ...]) -> None:
        """Run a command of rota for this app: flask rota runs ls."""
        from rota import cli
        from rota.cli.options.target import lend

        with lend(app) as reference:
            code = cli.run(["-A", reference, *words])
        if code:
            raise SystemExit(code)

    return command
