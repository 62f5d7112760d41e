"""Retrying: a verb is sent again while the store is away, within a window that the store's memory of ids outlives."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rota.errors import StoreUnavailable
from rota.store import RETRY_WINDOW

log = logging.getLogger("rota")

T = TypeVar("T")
PAUSES = (0.2, 1.0, 4.0)
"""Seconds between the tries of a submit."""


async def patiently(call: Callable[[], Awaitable[T]], patience: float = RETRY_WINDOW) -> T:
    """Every verb may be sent again: a store that was away for a moment costs nothing but that moment.

    All tries together end after `patience` seconds, one under way included. So the store still knows the id of what an
    earlier try may have brought in, and a later one makes no second run.
    """
    failure = StoreUnavailable(f"the store has not answered for {patience:g} s")
    window = asyncio.timeout(patience)
    try:
        async with window:
            for pause in PAUSES:
                try:
                    return await call()
                except StoreUnavailable as error:
                    if not error.passing:
                        raise
                    failure = error
                    log.warning("the store is away, next try in %.1f s: %s", pause, error)
                    await asyncio.sleep(pause)
            return await call()
    except TimeoutError:
        if window.expired():
            raise failure from None
        raise
