"""The janitor: from time to time, expire what is too late and forget what is old."""

import asyncio
import logging

from rota.engine.events import tell_unstarted
from rota.engine.hooks import Hooks
from rota.store import Retention, Store

log = logging.getLogger("rota")


class Janitor:
    def __init__(self, store: Store, every: float, retention: Retention, hooks: Hooks) -> None:
        self._store = store
        self._hooks = hooks
        self._every = every
        self._retention = retention

    async def run(self) -> None:
        while True:
            swept = await self._store.sweep(self._retention)
            if swept.expired or swept.forgotten:
                log.debug("swept: %d expired, %d forgotten", swept.expired, swept.forgotten)
            if swept.ended and self._hooks.wanted("cancelled"):
                self._hooks.later(tell_unstarted(self._store, self._hooks, swept.ended))
            await asyncio.sleep(0 if swept.more else self._every)
