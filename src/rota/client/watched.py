"""Watched: a store that tells how long each verb took, how it failed, and what time it was in the store."""

import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, cast

from msgspec import Struct

from rota.store import Store

Observe = Callable[[str, float, BaseException | None], None]
"""Hears the verb, its seconds, and its error if it failed."""


class StoreTime(Struct):
    """The store's time in the last answer that this code and the tasks that it began have had."""

    now: float | None = None


store_time: ContextVar[StoreTime | None] = ContextVar("rota_store_time", default=None)


class Watched:
    def __init__(self, store: Store, observe: Observe) -> None:
        self._store = store
        self._observe = observe

    def __getattr__(self, name: str) -> Any:
        verb: Callable[..., Awaitable[Any]] = getattr(self._store, name)

        async def timed(*args: Any, **kwargs: Any) -> Any:
            start, error = time.perf_counter(), None
            try:
                answer = await verb(*args, **kwargs)
                if (known := store_time.get()) is not None:
                    known.now = getattr(answer, "now", known.now)
                return answer
            except BaseException as raised:
                error = raised
                raise
            finally:
                self._observe(name, time.perf_counter() - start, error)

        return timed


def watched(store: Store, observe: Observe | None) -> Store:
    """Return `store` for one call of a verb; with `observe`, one that tells of it."""
    return store if observe is None else cast("Store", Watched(store, observe))
