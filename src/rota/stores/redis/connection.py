"""Connection: opens a socket for the first request, and a new one after a socket broke."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from redis.exceptions import TimeoutError as Late

from rota.stores.redis.resolver import REPLY_TIMEOUT, Resolver
from rota.stores.redis.resp import RespSocket, Word


class Connection:
    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._turn = asyncio.Lock()
        self._socket: RespSocket | None = None

    def send(self, *command: Word) -> Awaitable[Any]:
        """Return what to await for the reply. It raises the error that the server replied, or Broken or Late if no
        reply came."""
        socket = self._socket
        if socket is None or socket.broken is not None:
            return self._send_anew(*command)
        return socket.send(*command)

    async def _send_anew(self, *command: Word) -> Any:
        return await (await self._connected()).send(*command)

    async def _connected(self) -> RespSocket:
        try:
            async with asyncio.timeout(REPLY_TIMEOUT), self._turn:
                if self._socket is None or self._socket.broken is not None:
                    self._socket = RespSocket(await self._resolver.connection())
                return self._socket
        except TimeoutError as error:
            raise Late(f"no connection within {REPLY_TIMEOUT:.0f} s") from error

    def drop(self) -> None:
        """Close the socket. Requests without a reply raise Broken."""
        if self._socket is not None:
            self._socket.close()
