"""Where the ids of new runs come from."""

import os
import time
from collections.abc import Callable
from contextvars import ContextVar

from rota.domain.ids import uuid7

_chances: list[bytes] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_chances.clear)  # or parent and child would give the same ids


def _chance() -> bytes:
    """Ten random bytes. The system is asked for many at once: asking took a third of making an id."""
    try:
        return _chances.pop()
    except IndexError:
        fresh = os.urandom(2560)
        _chances.extend(fresh[at : at + 10] for at in range(10, 2560, 10))
        return fresh[:10]


def _fresh_id() -> str:
    return uuid7(time.time_ns() // 1_000_000, _chance())


id_source: ContextVar[Callable[[], str]] = ContextVar("rota id source", default=_fresh_id)
"""Where the ids of new runs come from; a simulation brings its own, so that it can be repeated."""


def new_id() -> str:
    return id_source.get()()
