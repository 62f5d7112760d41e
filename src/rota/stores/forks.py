"""A fork waits until no step of a store is under way, and finds no SQLite file open.

A child that is forked in the middle of a step would inherit half of it, and a lock that nobody releases. SQLite also
notes in memory which locks its process holds on which file. A child that inherits such notes would wait for a lock that
it seems to hold itself, or take none because it seems to have it: then its file is cleared away under it.
"""

import os
import threading
from typing import Protocol
from weakref import WeakSet

PATIENCE = 5.0
"""Seconds for which a fork waits for one store at most; then it comes all the same."""


class Forkable(Protocol):
    """Who works while it holds the lock. After `let_go` it finds nothing open, and opens again when it has work."""

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
    """Whatever did not let go stays locked in the child for ever: a fork of the child must not wait for it."""
    _all.difference_update(_busy)
    _in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
