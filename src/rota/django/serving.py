"""Serving: the engine in the processes of a Django site that serve requests, and in no others.

A process that serves builds a WSGIHandler or an ASGIHandler: every server asks `get_wsgi_application` or
`get_asgi_application` for one, and `check`, `migrate` and `shell` do not. A server that loads the site and then forks
is the exception: there the children start their engines after the fork, or with their first request.
"""

import logging
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager

from django.core.handlers.base import BaseHandler
from django.core.signals import request_started

from rota.django import lifespan, stopping
from rota.django.conf import conf, in_tests
from rota.django.servers import Server, call_after_uwsgi_forks, forked_worker, gunicorn_worker, server_here

log = logging.getLogger("rota.django")

FORKED = 0.2
"""Seconds from a fork to the start of the engine in the child. A child that runs another program is gone by then."""
HANDLERS = ("django.core.handlers.wsgi", "django.core.handlers.asgi")


class _Process:
    """What this process knows of its own engine."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.decided = False
        """Whether it is decided that this process starts an engine, or starts none."""
        self.forks = False
        """Whether this process loads the site for children that will serve it."""


_process = _Process()
_built = False
"""Whether this process, or the one it was forked from, has built a handler. Django's test client builds none."""


def watch() -> None:
    """Notice from now on when this process begins to serve; called once Django is ready."""
    if getattr(BaseHandler.load_middleware, "rota", False):
        return
    plain = BaseHandler.load_middleware

    def load_middleware(self: BaseHandler, is_async: bool = False) -> None:
        plain(self, is_async=is_async)
        if any(kind.__module__ in HANDLERS for kind in type(self).__mro__):
            _handler_built(is_async)

    load_middleware.rota = True  # type: ignore[attr-defined]
    BaseHandler.load_middleware = load_middleware  # type: ignore[method-assign]
    request_started.connect(_request_started, dispatch_uid="rota.django")
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)


def _handler_built(is_async: bool) -> None:
    global _built
    _built = True
    if is_async:
        lifespan.speak()
    server = server_here()
    if server.parent is not None:
        _process.forks = True
        log.info("no engine in this process (pid %d): %s", os.getpid(), server.parent)
        call_after_uwsgi_forks(lambda: serve("uwsgi serves the site here", server_here()))
        return
    serve(f"{server.name} serves the site here", server)


def _request_started(**_: object) -> None:
    if _built and not _here().decided:
        serve("a request came, and no engine had started", server_here())


def _forked() -> None:
    """In the child of a process that loaded the site: start the engine soon."""
    global _process
    before, _process = _process, _Process()
    if not before.forks:
        return
    worker = forked_worker()
    if worker is None:
        return
    server = gunicorn_worker(worker)
    stopping.hear_gunicorn(worker)
    timer = threading.Timer(FORKED, serve, ("gunicorn has forked this worker", server))
    timer.daemon = True
    timer.start()


def _here() -> _Process:
    """Return the process's own knowledge. uWSGI forks without the functions that Python calls after a fork."""
    global _process
    if _process.pid != os.getpid():
        _process = _Process()
    return _process


def serve(why: str, server: Server | None = None) -> None:
    """Start the engine on threads of its own, once per process, unless the settings say otherwise."""
    here, server = _here(), server or Server()
    with here.lock:
        if here.decided:
            return
        here.decided = True
    embedded = conf().embedded
    if embedded is False:
        log.info('no engine in this process (pid %d): ROTA["EMBEDDED"] is False', os.getpid())
    elif embedded == "auto" and in_tests():
        log.debug("no engine in this process (pid %d): these are tests", os.getpid())
        here.decided = False  # a later request may come outside of tests
    elif not server.threads:
        log.warning(
            "no engine in this process (pid %d): %s runs no threads; start it with --enable-threads",
            os.getpid(),
            server.name,
        )
    else:
        log.info("the engine starts in this process (pid %d): %s", os.getpid(), why)
        stopping.prepare(server)
        threading.Thread(target=_start, args=(server,), name="rota-start", daemon=True).start()


def _start(server: Server) -> None:
    from rota.app import embedded
    from rota.django.project import app

    embedded.start(app(), log, stopping.begun(), server.grace)


def state() -> str:
    """Return whether this process has decided about its engine: "decided" or "undecided"."""
    return "decided" if _here().decided else "undecided"


def forget_decision() -> None:
    """For tests: this process is as undecided as one that was forked just now."""
    global _process
    _process = _Process()


@contextmanager
def forgotten() -> Generator[None]:
    """For tests: until the block ends, this process has decided nothing."""
    global _process, _built
    before, _process, _built = (_process, _built), _Process(), False
    try:
        yield
    finally:
        _process, _built = before
