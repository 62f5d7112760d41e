"""One connection through the fault proxy, and its faults."""

import asyncio
import contextlib
import socket
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from storekit.servers.places import Address

Fault = Literal["cut before", "cut after", "delay", "black hole"]
"""What happens to a request. cut before: the connection is cut before the server sees it. cut after: the connection is
cut after the server has executed it and before the client sees the reply. delay: it is forwarded late. black hole: the
connection stays open, and nothing more is forwarded."""

CHUNK = 65_536


@dataclass
class PlannedFault:
    """A fault for a request that has not come yet."""

    fault: Fault
    times: int
    match: bytes
    skip: int
    seconds: float


class Faults:
    """The faults to apply: single ones in the order of `add`, and those that last until `heal`."""

    def __init__(self) -> None:
        self.black_hole = False
        self.delay = 0.0
        self.struck: list[Fault] = []
        self._planned: deque[PlannedFault] = deque()
        self._news = asyncio.Condition()

    def add(self, fault: Fault, times: int, match: bytes, skip: int, seconds: float) -> None:
        self._planned.append(PlannedFault(fault, times, match, skip, seconds))

    def forget(self) -> None:
        self.black_hole = False
        self.delay = 0.0
        self._planned.clear()

    def take(self, request: bytes) -> PlannedFault | None:
        """Return the fault for a request, or None. Only the first fault is considered, so that faults keep their
        order."""
        first = self._planned[0] if self._planned else None
        if first is None or first.match not in request:
            return None
        if first.skip > 0:
            first.skip -= 1
            return None
        first.times -= 1
        if first.times <= 0:
            self._planned.popleft()
        return first

    async def has_struck(self, fault: Fault) -> None:
        async with self._news:
            self.struck.append(fault)
            self._news.notify_all()

    async def until_struck(self, count: int) -> None:
        async with self._news:
            await self._news.wait_for(lambda: len(self.struck) >= count)


class Link:
    """The connection of a client to the proxy, and the one of the proxy to the server. When one ends, the other is
    closed."""

    task: asyncio.Task[None]

    def __init__(self, client: socket.socket, address: Address, common: Faults) -> None:
        self.faults = Faults()
        self.swallowing = common.black_hole
        self._common = common
        self._client = client
        self._address = address
        self._server: socket.socket | None = None
        self._is_postgres: bool | None = None
        self._replied = True
        self._asked = b""
        self._withheld: bytes | None = None

    def fail_next(
        self, fault: Fault, *, times: int = 1, match: bytes = b"", skip: int = 0, seconds: float = 0.0
    ) -> None:
        """Do as `FaultProxy.fail_next`, for this connection only."""
        self.faults.add(fault, times, match, skip, seconds)

    def cut(self) -> None:
        """Stop forwarding and close both connections."""
        self.swallowing = True
        self.task.get_loop().call_soon_threadsafe(self.task.cancel)

    async def run(self) -> None:
        try:
            if not self.swallowing:
                self._server = await self._reach(self._address)
            await self._pump()
        except OSError:
            pass  # one side has left; close the other
        finally:
            for end in (self._client, self._server):
                if end is not None:
                    end.close()

    async def _reach(self, address: Address) -> socket.socket:
        server = socket.socket(socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET)
        for end in (self._client, server):
            end.setblocking(False)
            if end.family == socket.AF_INET:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            loop = asyncio.get_running_loop()
            await loop.sock_connect(server, str(address) if isinstance(address, Path) else address)
        except BaseException:
            server.close()
            raise
        return server

    async def _pump(self) -> None:
        self._client.setblocking(False)
        pumps = [asyncio.create_task(self._requests())]
        if self._server is not None:
            pumps.append(asyncio.create_task(self._replies(self._server)))
        try:
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            for pump in done:
                pump.result()
        finally:
            for pump in pumps:
                pump.cancel()
            with contextlib.suppress(OSError):
                await asyncio.gather(*pumps, return_exceptions=True)

    async def _requests(self) -> None:
        """Forward from the client to the server until the client leaves or a fault cuts the connection."""
        loop = asyncio.get_running_loop()
        while chunk := await loop.sock_recv(self._client, CHUNK):
            if self._is_postgres is None:
                # the first message of PostgreSQL: a length, then version 3.x
                self._is_postgres = chunk[4:6] == b"\x00\x03"
            if self._replied and not await self._begin(chunk):
                return
            self._asked = chunk
            if not self.swallowing and self._server is not None:
                await loop.sock_sendall(self._server, chunk)

    async def _begin(self, request: bytes) -> bool:
        """Handle a new request, and return whether its connection stays open."""
        self._replied = False
        if self._common.delay:
            await asyncio.sleep(self._common.delay)
        planned = self.faults.take(request) or self._common.take(request)
        if planned is None:
            return True
        match planned.fault:
            case "delay":
                await asyncio.sleep(planned.seconds)
            case "black hole":
                self.swallowing = True
            case "cut after":
                self._withheld = b""
                return True  # the fault has happened when the reply has come
            case "cut before":
                pass
        await self._common.has_struck(planned.fault)
        return planned.fault != "cut before"

    async def _replies(self, server: socket.socket) -> None:
        """Forward from the server to the client until the server leaves or a fault withholds a reply."""
        loop = asyncio.get_running_loop()
        while chunk := await loop.sock_recv(server, CHUNK):
            if self.swallowing:
                continue
            if self._withheld is None:
                self._replied = True
                await loop.sock_sendall(self._client, chunk)
                continue
            self._withheld += chunk
            if self._is_whole(self._withheld):
                await self._common.has_struck("cut after")
                return

    def _is_whole(self, reply: bytes) -> bool:
        # Redis replies when it is done. PostgreSQL begins to reply before it commits if the rows fill a buffer; it is
        # done when it says ReadyForQuery, whose last byte is the state of the transaction. After a Flush it does not
        # say so, and nothing commits.
        if not self._is_postgres or self._asked.endswith(b"H\x00\x00\x00\x04"):
            return True
        return reply[-6:-1] == b"Z\x00\x00\x00\x05"
