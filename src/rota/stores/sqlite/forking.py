"""A fork waits until no transaction is under way, and finds no file open.

SQLite notes in memory which locks its process holds on which file. A child that inherits such notes would wait for a
lock that it seems to hold itself, or take none because it seems to have it: then its file is cleared away under it.
"""

import os
import threading
from typing import Protocol
from weakref import WeakSet

PATIENCE = 5.0
"""Seconds for which a fork waits for one connection at most; then it comes all the same."""


class Forkable(Protocol):
    """Who has a connection: it works while it holds the lock, and opens again when it has work after `let_go`."""

    at_work: threading.Lock

    def let_go(self) -> None: ...


_all: WeakSet[Forkable] = WeakSet()
_held: list[Forkable] = []


def beware_of_forks(one: Forkable) -> None:
    _all.add(one)


def _before() -> None:
    for one in list(_all):
        if one.at_work.acquire(timeout=PATIENCE):
            _held.append(one)
            one.let_go()


def _after() -> None:
    while _held:
        _held.pop().at_work.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
