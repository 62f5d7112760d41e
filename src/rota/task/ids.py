"""Where the ids of new runs come from."""

import os
import time
from collections.abc import Callable
from contextvars import ContextVar

from rota.domain.ids import uuid7, uuid7s

_chances: list[bytes] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_chances.clear)  # otherwise parent and child would make the same ids


def _chance() -> bytes:
    """Ten random bytes. One call of os.urandom serves 256 ids: a call for each id was a third of the cost of an id."""
    try:
        return _chances.pop()
    except IndexError:
        fresh = os.urandom(2560)
        _chances.extend(fresh[at : at + 10] for at in range(10, 2560, 10))
        return fresh[:10]


def _fresh_id() -> str:
    return uuid7(time.time_ns() // 1_000_000, _chance())


id_source: ContextVar[Callable[[], str]] = ContextVar("rota id source", default=_fresh_id)
"""The function that makes ids of new runs; a simulation sets its own, so that the same seed makes the same ids."""


def new_id() -> str:
    return id_source.get()()


def new_ids(count: int) -> list[str]:
    """Return ids for `count` new runs."""
    source = id_source.get()
    if source is not _fresh_id:
        return [source() for _ in range(count)]
    return uuid7s(time.time_ns() // 1_000_000, os.urandom(10 * count))
