"""Servers: what the call stack says of the server that loads a Django site."""

import os
import sys
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from rota.app.servers import gunicorn_grace, stack


class Server(Struct, frozen=True):
    """The server that loads the site, as far as it matters to an engine."""

    name: str = "the server"
    parent: str | None = None
    """Why this process will not serve; None: it will."""
    grace: float | None = None
    """The most seconds that a stop may take; None: as many as the settings say."""
    worker: Any = None
    """The object of gunicorn's worker, which hears the signals."""
    threads: bool = True
    """Whether the threads of Python run between two requests."""


def server_here() -> Server:
    """Return the server on whose call stack this code runs."""
    found = Server()
    for frame in stack():
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("gunicorn.workers."):
            return _gunicorn(frame.f_locals.get("self"))
        if module == "gunicorn.arbiter":  # without a worker below it: the arbiter loads the site before it forks
            return Server("gunicorn", parent="gunicorn loads the site here and serves it in forked workers (--preload)")
        if module.endswith(".management.commands.runserver"):
            return Server("runserver", grace=0.0)
        if module.endswith(".management.commands.runserver_plus"):
            reloads = os.environ.get("WERKZEUG_RUN_MAIN") != "true"
            parent = "the reloader of runserver_plus may serve the site in a child" if reloads else None
            return Server("runserver_plus", parent, grace=0.0)
        found = Server(_named(module)) if found == Server() and _named(module) else found
    return _uwsgi() or found


def forked_worker() -> Any:
    """Return the worker of gunicorn that this process, just forked, will be; None: the fork has another purpose."""
    for frame in stack():
        if frame.f_globals.get("__name__") == "gunicorn.arbiter" and "worker" in frame.f_locals:
            return frame.f_locals["worker"]
    return None


def gunicorn_worker(worker: Any) -> Server:
    return _gunicorn(worker)


def _gunicorn(worker: Any) -> Server:
    return Server("gunicorn", grace=gunicorn_grace(worker), worker=worker)


def _uwsgi() -> Server | None:
    """uWSGI has no frames of its own: it calls the loader from C."""
    uwsgi: Any = sys.modules.get("uwsgi")
    if uwsgi is None:
        return None
    parent = None if uwsgi.worker_id() else "uWSGI loads the site here and serves it in its workers"
    return Server("uwsgi", parent, threads=bool(getattr(uwsgi, "has_threads", True)))


def call_after_uwsgi_forks(call: Callable[[], None]) -> None:
    """Let uWSGI call a function in each of its workers, before their first request; elsewhere do nothing.

    uWSGI has one such function and calls it in mules and spoolers too, which serve nothing.
    """
    uwsgi: Any = sys.modules.get("uwsgi")
    if uwsgi is None:
        return
    plain = getattr(uwsgi, "post_fork_hook", None)

    def after_fork() -> None:
        if plain is not None:
            plain()
        if uwsgi.worker_id():
            call()

    uwsgi.post_fork_hook = after_fork


def _named(module: str) -> str:
    package = module.partition(".")[0]
    return package if package in ("uvicorn", "granian", "daphne", "hypercorn", "waitress", "mod_wsgi") else ""
