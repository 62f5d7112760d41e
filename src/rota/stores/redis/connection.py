"""Line: a wire that is laid when it is first needed, and again after it broke."""

import asyncio
from typing import Any

from redis.exceptions import TimeoutError as Late

from rota.stores.redis.resolver import REPLY_TIMEOUT, Resolver
from rota.stores.redis.resp import RespSocket, Word


class Connection:
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._turn = asyncio.Lock()
        self._socket: RespSocket | None = None

    async def send(self, *command: Word) -> Any:
        """The answer, or what the server had against it; Broken or Late if none came."""
        socket = self._socket
        if socket is None or socket.broken is not None:
            socket = await self._connected()
        return await socket.send(*command)

    async def _connected(self) -> RespSocket:
        try:
            async with asyncio.timeout(REPLY_TIMEOUT), self._turn:
                if self._socket is None or self._socket.broken is not None:
                    self._socket = RespSocket(await self._resolver.connection())
                return self._socket
        except TimeoutError as error:
            raise Late(f"no connection within {REPLY_TIMEOUT:.0f} s") from error

    def drop(self) -> None:
        """Break the connection; what is on its way gets no answer."""
        if self._socket is not None:
            self._socket.close()
