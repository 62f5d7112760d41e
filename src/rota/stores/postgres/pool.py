"""The pool: the connections of one open store. Every verb is one call of one function, on any free connection."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from rota.errors import StoreError, StoreUnavailable
from rota.stores.postgres.address import Login
from rota.stores.postgres.driver import (
    CALL_PATIENCE,
    Connection,
    Fault,
    Record,
    connect,
    connect_plainly,
    explain,
    fault_of,
)

log = logging.getLogger("rota")

TRIES = 10
"""How often a verb is sent again that the server rolled back."""
RESENDS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds before each resend of a verb whose connection was lost. After that the caller may retry."""


class Pool:
    """At most `most` connections, opened when needed; the connection that was used last is used first."""

    def __init__(self, login: Login, shown: str, most: int, failed: Callable[[], None]) -> None:
        self.login = login
        self.shown = shown
        self.pooled = False
        """Is there a pooler, which may use another connection to the server for each transaction?"""
        self._failed = failed
        self._free = asyncio.Semaphore(most)
        self._idle: list[Connection] = []
        self._closed = False

    async def open(self) -> Connection:
        """Find out whether there is a pooler, and open the first connection."""
        connection = await connect_plainly(
            self.login
        )  # a pooler may know a prepared statement of the same name already
        try:
            async with connection.transaction():
                (row,) = await connection.fetch("SELECT pg_backend_pid() AS pid")
            # A pooler invents the process id that is used to cancel queries: it is not the id of the server process.
            self.pooled = row["pid"] != connection.get_server_pid()
        finally:
            await self._close(connection)
        return await self._connect()

    def keep(self, connection: Connection) -> None:
        self._idle.append(connection)

    async def call(self, query: str, *args: Any) -> list[Record]:
        """Send a verb until the server has answered. All verbs are idempotent, so a verb is sent again when the server
        rolled it back (at most TRIES times), and on a new connection when its connection was lost (RESENDS).

        One deadline holds for all waits (for a free place, for a connection) and all sends. Nothing is sent after it,
        because the store forgets ids after a while, and would then take a resent put for a new one.
        """
        window = asyncio.timeout(CALL_PATIENCE)
        try:
            async with window:
                return await self._send(query, args, window.when() or 0.0)
        except TimeoutError as error:
            if not window.expired():
                raise
            self._failed()
            raise explain(error, self.shown) from error

    async def _send(self, query: str, args: tuple[Any, ...], deadline: float) -> list[Record]:
        """Send until `deadline`. Race: the error of a lost connection may replace the cancellation by the deadline, so
        the clock is read too."""
        rollbacks, pauses = 0, iter(RESENDS)
        clock = asyncio.get_running_loop().time
        fresh = False
        while True:
            try:
                return await self._call(query, args, fresh)
            except StoreError:
                raise
            except Exception as error:
                fault = fault_of(error)
                late = isinstance(error, TimeoutError) or clock() >= deadline
                if fault is Fault.ROLLED_BACK and rollbacks < TRIES and not late:
                    rollbacks += 1
                    await asyncio.sleep(0.001 * 2 ** min(rollbacks, 7))
                    continue
                if fault is Fault.AWAY:
                    fresh = True
                    self._failed()
                    pause = None if late else next(pauses, None)
                    if pause is not None:
                        await asyncio.sleep(pause)
                        continue
                raise explain(error, self.shown) from error

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(self._close(connection) for connection in idle))

    async def _close(self, connection: Connection) -> None:
        try:
            await connection.close(timeout=5)
        except Exception:
            connection.terminate()

    async def _connect(self) -> Connection:
        """Verbs need READ COMMITTED, whatever the default of the role or of the database is."""
        if self.pooled:
            return await connect_plainly(self.login)
        connection = await connect(self.login)
        try:
            await connection.execute("SET default_transaction_isolation = 'read committed'")
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _call(self, query: str, args: tuple[Any, ...], fresh: bool) -> list[Record]:
        if self._closed:
            raise StoreUnavailable(f"{self.shown} is closed", passing=False)
        async with self._free:
            connection = await self._connection(fresh)
            try:
                if self.pooled:
                    async with connection.transaction(isolation="read_committed"):
                        rows = await connection.fetch(query, *args)
                else:
                    rows = await connection.fetch(query, *args)
            except BaseException as error:
                if isinstance(error, Exception) and fault_of(error) is not Fault.AWAY:
                    await self._give_back(connection)
                else:
                    connection.terminate()  # it is unknown what the connection would answer next
                raise
            await self._give_back(connection)
            return rows

    async def _give_back(self, connection: Connection) -> None:
        if self._closed:
            await self._close(connection)
        elif not connection.is_closed():
            self._idle.append(connection)

    async def _connection(self, fresh: bool) -> Connection:
        """An idle connection, or a new one. A connection that the server has closed looks idle until its end is read.
        So after a connection was lost (`fresh`), a new connection replaces an idle one."""
        if fresh and self._idle:
            self._idle.pop().terminate()
        while self._idle and not fresh:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await self._connect()
