"""The janitor: sweeps the store from time to time."""

import asyncio
import logging

from rota.engine.events import Announcer
from rota.store import Retention, Store

log = logging.getLogger("rota")


class Janitor:
    def __init__(self, store: Store, every: float, retention: Retention, announcer: Announcer) -> None:
        self._store = store
        self._announcer = announcer
        self._every = every
        self._retention = retention

    async def run(self) -> None:
        while True:
            swept = await self._store.sweep(self._retention)
            if swept.expired or swept.forgotten:
                log.debug("swept: %d expired, %d forgotten", swept.expired, swept.forgotten)
            self._announcer.expired(swept.ended)
            await asyncio.sleep(0 if swept.more else self._every)
