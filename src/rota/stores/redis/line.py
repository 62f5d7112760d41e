"""Line: one connection with any number of requests on their way. They are answered in the order they were sent."""

import asyncio
from collections import deque
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as Broken
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as Late

from rota.stores.redis.finding import REPLY_TIMEOUT, Finder, next_reply

Word = str | bytes | int | float


class Line:
    """Connects when it is first needed, and again after it broke. Whoever is cancelled leaves the others alone."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._turn = asyncio.Lock()
        self._connection: AbstractConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: deque[asyncio.Future[Any]] = deque()

    async def ask(self, *command: Word) -> Any:
        """The answer, or what the server had against it; Broken or Late if none came."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        connection: AbstractConnection | None = None
        try:
            async with asyncio.timeout(REPLY_TIMEOUT):
                async with self._turn:
                    connection = self._connection or await self._connect()
                    self._waiting.append(answer)
                    await connection.send_command(*command)
                return await answer
        except TimeoutError as error:
            await self._drop(connection)
            raise Late(f"no answer within {REPLY_TIMEOUT:.0f} s") from error
        except RedisError as error:
            if isinstance(error, Broken):
                await self._drop(connection)
            raise
        finally:
            answer.cancel()  # if nobody waits any more, its reader passes it over

    async def _connect(self) -> AbstractConnection:
        connection = self._connection = await self._finder.connection()
        self._waiting = deque()
        self._reader = asyncio.create_task(self._read(connection, self._waiting), name="rota reads replies")
        return connection

    async def _read(self, connection: AbstractConnection, waiting: deque[asyncio.Future[Any]]) -> None:
        try:
            while True:
                try:
                    answer, error = await next_reply(connection), None
                except RedisError as said:
                    answer, error = None, said
                    if isinstance(said, Broken | Late):
                        raise
                asker = waiting.popleft()
                if asker.done():
                    continue
                if error is None:
                    asker.set_result(answer)
                else:
                    asker.set_exception(error)
        except (RedisError, OSError) as broken:
            self._fail(waiting, broken)
        finally:
            if self._connection is connection:
                self._connection = None
            await connection.disconnect(nowait=True)

    def _fail(self, waiting: deque[asyncio.Future[Any]], error: Exception) -> None:
        while waiting:
            asker = waiting.popleft()
            if not asker.done():
                asker.set_exception(Broken(str(error) or "the connection broke"))

    async def drop(self) -> None:
        """Break the connection; what is on its way gets no answer."""
        await self._drop(self._connection)

    async def _drop(self, connection: AbstractConnection | None) -> None:
        """Only this one: whoever noticed late must not break the next."""
        if connection is None or connection is not self._connection:
            return
        reader, self._reader, self._connection = self._reader, None, None
        if reader is not None and not reader.done():
            waiting = self._waiting
            reader.cancel()
            await asyncio.wait((reader,))
            self._fail(waiting, Broken("the connection was given up"))
