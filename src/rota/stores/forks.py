"""A fork waits until no transaction of a store is under way, and closes the SQLite files before it.

A child that is forked during a transaction would inherit half of the transaction, and a lock that nobody releases.
SQLite also remembers in memory which locks its process has on which file. A child that inherits this memory would wait
for a lock that it seems to have itself, or take no lock because it seems to have it: then another process may remove
the log of the file while the child uses it.
"""

import os
import threading
from typing import Protocol
from weakref import WeakSet

PATIENCE = 5.0
"""The most seconds for which a fork waits for one store. After that the fork happens anyway."""


class Forkable(Protocol):
    """A part that works only while it has the lock `at_work`. After `release_at_fork` it has no file open; it opens the
    file again for its next work."""

    at_work: threading.Lock

    def release_at_fork(self) -> None: ...


_all: WeakSet[Forkable] = WeakSet()
_locked: list[Forkable] = []
_busy: list[Forkable] = []


def register(store: Forkable) -> None:
    _all.add(store)


def _before() -> None:
    for store in list(_all):
        if store.at_work.acquire(timeout=PATIENCE):
            _locked.append(store)
            store.release_at_fork()
        else:
            _busy.append(store)


def _in_parent() -> None:
    _busy.clear()
    while _locked:
        _locked.pop().at_work.release()


def _in_child() -> None:
    """Forget the busy stores: in the child their locks stay locked for ever, and a fork of the child must not wait."""
    _all.difference_update(_busy)
    _in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
