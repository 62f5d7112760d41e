"""Retrying: send a verb again while the store is unreachable, within a window that is shorter than ID_MEMORY."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from rota.errors import StoreUnavailable
from rota.store import RETRY_WINDOW

log = logging.getLogger("rota")

T = TypeVar("T")
PAUSES = (0.2, 1.0, 4.0)
"""Seconds between two tries."""


async def patiently(call: Callable[[], Awaitable[T]], patience: float = RETRY_WINDOW) -> T:
    """Call `call` until the store answers; every verb of a store can be sent again.

    All tries end after `patience` seconds, including the one under way. The store still remembers the ids of runs that
    an earlier try has put, so that a later try makes no second run.
    """
    failure: StoreUnavailable | None = None
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
                    log.warning("store unreachable, next try in %.1f s: %s", pause, error)
                    await asyncio.sleep(pause)
            return await call()
    except TimeoutError:
        if window.expired():
            raise failure or StoreUnavailable(f"the store has not answered for {patience:g} s") from None
        raise
