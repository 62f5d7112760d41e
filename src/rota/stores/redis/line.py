"""Line: a wire that is laid when it is first needed, and again after it broke."""

import asyncio
from typing import Any

from redis.exceptions import TimeoutError as Late

from rota.stores.redis.finding import REPLY_TIMEOUT, Finder
from rota.stores.redis.wire import Wire, Word


class Line:
    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._turn = asyncio.Lock()
        self._wire: Wire | None = None

    async def ask(self, *command: Word) -> Any:
        """The answer, or what the server had against it; Broken or Late if none came."""
        wire = self._wire
        if wire is None or wire.broken is not None:
            wire = await self._connected()
        return await wire.ask(*command)

    async def _connected(self) -> Wire:
        try:
            async with asyncio.timeout(REPLY_TIMEOUT), self._turn:
                if self._wire is None or self._wire.broken is not None:
                    self._wire = Wire(await self._finder.connection())
                return self._wire
        except TimeoutError as error:
            raise Late(f"no connection within {REPLY_TIMEOUT:.0f} s") from error

    def drop(self) -> None:
        """Break the connection; what is on its way gets no answer."""
        if self._wire is not None:
            self._wire.close()
