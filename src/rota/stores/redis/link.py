"""Link: scripts to the server and their answers back. Every verb may be sent again, so a lost reply is asked for again."""

import asyncio
import time
from collections import deque
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError, NoScriptError, RedisError, TimeoutError

from rota.errors import StoreUnavailable
from rota.stores.redis.explaining import elsewhere, explain
from rota.stores.redis.finding import Finder
from rota.stores.redis.place import Place
from rota.stores.redis.scripts import script

PAUSES = (0.0, 0.05, 0.2, 0.5)
"""Seconds before each further try."""
PATIENCE = 2.0
"""Seconds after which there is no further try: whoever calls has retries of its own."""

Answer = Any


class Link:
    """A few connections, each with one request on its way at a time."""

    def __init__(self, place: Place, modern: bool = False) -> None:
        self.place = place
        self.finder = Finder(place)
        self.modern = modern
        self._free: deque[AbstractConnection] = deque()
        self._seats = asyncio.Semaphore(place.max_connections)
        self._closed = False

    async def run(self, verb: str, *words: str | bytes | int | float) -> Answer:
        """One script, carried out at least once; twice is as good as once."""
        code = script(verb, self.modern)
        try:
            return await self.ask("EVALSHA", code.sha, 1, self.place.root, *words)
        except NoScriptError:  # a new server, or SCRIPT FLUSH
            return await self.told("EVAL", code.text, 1, self.place.root, *words)
        except RedisError as error:
            raise explain(error, self.place.shown) from error

    async def told(self, *command: str | bytes | int | float) -> Answer:
        """A command's answer; errors are ours."""
        try:
            return await self.ask(*command)
        except RedisError as error:
            raise explain(error, self.place.shown) from error

    async def ask(self, *command: str | bytes | int | float) -> Answer:
        """A command's answer, with errors that the server itself has answered as they are."""
        began = time.monotonic()
        for pause in PAUSES:
            try:
                return await self._once(*command)
            except (ConnectionError, TimeoutError, OSError) as error:
                self._lost(error)
                failure: Exception = error
            except RedisError as error:
                if not elsewhere(error):
                    raise
                self._lost(error)
                failure = error
            if time.monotonic() - began > PATIENCE:
                break
            await asyncio.sleep(pause)
        raise explain(failure, self.place.shown) from failure

    async def _once(self, *command: str | bytes | int | float) -> Answer:
        if self._closed:
            raise StoreUnavailable(f"{self.place.shown} is closed", passing=False)
        async with self._seats:
            connection = self._free.pop() if self._free else await self.finder.connection()
            try:
                await connection.send_command(*command)
                answer = await connection.read_response()
            except RedisError as error:
                if isinstance(error, ConnectionError | TimeoutError):
                    await connection.disconnect(nowait=True)
                else:
                    self._free.append(connection)
                raise
            except BaseException:  # cut off in the middle: its reply would be taken for another's
                await connection.disconnect(nowait=True)
                raise
            self._free.append(connection)
            return answer

    def _lost(self, error: BaseException) -> None:
        """The server may be another one now: connections to this one are worth nothing."""
        self.finder.lost()
        if elsewhere(error) or isinstance(error, ConnectionError):
            idle, self._free = self._free, deque()
            for connection in idle:
                connection._close()  # pyright: ignore[reportPrivateUsage]

    async def close(self) -> None:
        self._closed = True
        while self._free:
            await self._free.pop().disconnect(nowait=True)
