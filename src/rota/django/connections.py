"""Connections: which threads of a worker have connections to the project's databases, and when these are closed.

Django closes them between two requests, and a worker has no requests. So every call of a task, Django's or
`@app.task`, is between two looks at the connections of its thread. An async function has a thread of its own
for its database calls: without one, all async functions of a process would share a single thread.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.conf import settings
from django.db import connections, reset_queries

from rota.django.conf import in_tests


@contextmanager
def cared_for() -> Generator[None]:
    """Around every call of a task of the project, in the thread or the loop that makes the call. In tests, the thread
    of the test has the transaction and makes the calls: nothing is closed there."""
    if in_tests():
        yield
    elif _on_a_loop():
        with _thread_of_its_own():
            yield
    else:
        _close_old()
        for connection in connections.all(initialized_only=True):
            # The first query of the call looks whether the server is there. The stubs lack the attribute.
            setattr(connection, "health_check_enabled", True)  # noqa: B010
        if settings.DEBUG:
            reset_queries()
        try:
            yield
        finally:
            _close_old()


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def close_all() -> None:
    """Close the connections of a thread that ends."""
    connections.close_all()


def _close_old() -> None:
    """Do as Django's `close_old_connections`, but leave a connection in a transaction alone."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


@contextmanager
def _thread_of_its_own() -> Generator[None]:
    """The thread starts with the first database call. It closes its connections after the last one and ends; nobody
    waits for that: a call that was cancelled may still be in a query."""
    own = ThreadSensitiveContext()
    before = SyncToAsync.thread_sensitive_context.set(own)
    try:
        yield
    finally:
        SyncToAsync.thread_sensitive_context.reset(before)
        executor = SyncToAsync.context_to_thread_executor.pop(own, None)
        if executor is not None:
            executor.submit(connections.close_all)
            executor.shutdown(wait=False)
