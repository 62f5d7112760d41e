"""Where the ids of new runs come from."""

import os
import time
from collections.abc import Callable
from contextvars import ContextVar

from rota.domain.ids import uuid7


def _fresh_id() -> str:
    return uuid7(time.time_ns() // 1_000_000, os.urandom(10))


id_source: ContextVar[Callable[[], str]] = ContextVar("rota id source", default=_fresh_id)
"""Where the ids of new runs come from; a simulation brings its own, so that it can be repeated."""


def new_id() -> str:
    return id_source.get()()
