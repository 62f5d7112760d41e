"""The time limit of a call: its timeout, and the seconds that its handler adds with `ctx.extend`."""

import asyncio
from collections.abc import Sequence
from typing import Any

from rota.engine.context import Context


async def first_within(
    futures: "Sequence[asyncio.Future[Any]]", timeout: float | None, context: Context | None = None
) -> bool:
    """Wait for the first of `futures`; return False if none is done in time. A handler can only add time, so the wait
    looks for added time when the time that it knew of is over."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        added = 0.0 if context is None else context.extended
        left = None if timeout is None else max(0.0, began + timeout + added - loop.time())
        done, _ = await asyncio.wait(futures, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if done or left == 0.0:
            return bool(done)
