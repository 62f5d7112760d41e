"""A fork waits until no transaction is under way.

SQLite notes in memory which locks its process holds: a child that was forked in the middle of a transaction would wait
for ever for a lock that it seems to hold itself.
"""

import os
import threading
from weakref import WeakSet

PATIENCE = 5.0
"""Seconds for which a fork waits for one connection at most."""

_locks: WeakSet[threading.Lock] = WeakSet()
_held: list[threading.Lock] = []


def fork_lock() -> threading.Lock:
    """To be held while a connection is at work."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def _before() -> None:
    _held.extend(lock for lock in list(_locks) if lock.acquire(timeout=PATIENCE))


def _after() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
