"""Lines: the connections of one open store. Every verb is one call of one function, on any line that is free."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from rota.errors import StoreError, StoreUnavailable
from rota.stores.postgres.driver import (
    BAD_ROW,
    CUT,
    ERRORS,
    TRY_AGAIN,
    Connection,
    Record,
    connect,
    connect_plainly,
    explain,
)

log = logging.getLogger("rota")

TRIES = 10
"""How often a verb is sent that the server rolls back because it met another."""


class Lines:
    """At most `most` connections, made when they are needed; the last one used is the first to be used again."""

    def __init__(self, dsn: str, shown: str, most: int, failed: Callable[[], None]) -> None:
        self.dsn = dsn
        self.shown = shown
        self.pooled = False
        """A pooler stands between: it hands out another server connection for every transaction."""
        self._failed = failed
        self._free = asyncio.Semaphore(most)
        self._idle: list[Connection] = []
        self._closed = False

    async def open(self) -> Connection:
        """The first connection, to be looked at before it is used."""
        connection = await connect_plainly(self.dsn)  # a statement of this name may stand in the pooler's line already
        try:
            async with connection.transaction():
                (row,) = await connection.fetch("SELECT pg_backend_pid() AS pid")
            # A pooler makes up the number by which a query is cancelled: it is not that of the server's process.
            self.pooled = row["pid"] != connection.get_server_pid()
        finally:
            await self._close(connection)
        return await self._connect()

    def keep(self, connection: Connection) -> None:
        self._idle.append(connection)

    async def call(self, query: str, *args: Any) -> list[Record]:
        """Verbs may be sent again: one that met another is, and one whose line was cut is once more."""
        cuts = 0
        for tries in range(1, TRIES + 1):
            try:
                return await self._call(query, args)
            except StoreError:
                raise
            except BAD_ROW:
                raise
            except TRY_AGAIN as error:
                if tries == TRIES:
                    raise explain(error, self.shown) from error
                await asyncio.sleep(0.001 * tries)
            except CUT as error:
                cuts += 1
                self._failed()
                if cuts > 1 or isinstance(error, TimeoutError):
                    raise explain(error, self.shown) from error
            except ERRORS as error:
                raise explain(error, self.shown) from error
        raise AssertionError("unreachable")

    async def close(self) -> None:
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(self._close(connection) for connection in idle))

    async def _close(self, connection: Connection) -> None:
        try:
            await connection.close(timeout=5)
        except ERRORS:
            connection.terminate()

    async def _connect(self) -> Connection:
        """Verbs need READ COMMITTED, whatever the role or the database have been given as their default."""
        if self.pooled:
            return await connect_plainly(self.dsn)
        connection = await connect(self.dsn)
        try:
            await connection.execute("SET default_transaction_isolation = 'read committed'")
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _call(self, query: str, args: tuple[Any, ...]) -> list[Record]:
        if self._closed:
            raise StoreUnavailable(f"{self.shown} is closed", passing=False)
        async with self._free:
            connection = await self._line()
            try:
                if self.pooled:
                    async with connection.transaction(isolation="read_committed"):
                        rows = await connection.fetch(query, *args)
                else:
                    rows = await connection.fetch(query, *args)
            except TRY_AGAIN:
                self._idle.append(connection)
                raise
            except BaseException as error:
                if isinstance(error, CUT) or not isinstance(error, Exception):
                    connection.terminate()  # nobody knows what it would answer next
                else:
                    self._idle.append(connection)
                raise
            await self._give_back(connection)
            return rows

    async def _give_back(self, connection: Connection) -> None:
        if self._closed:
            await self._close(connection)
        else:
            self._idle.append(connection)

    async def _line(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await self._connect()
