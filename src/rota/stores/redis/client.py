"""Link: scripts to the server, their answers back. Every verb may be sent again, so a lost reply costs a moment."""

import asyncio
import itertools
import time
from typing import Any

from redis.exceptions import AuthenticationError, NoScriptError, RedisError
from redis.exceptions import ConnectionError as Broken
from redis.exceptions import TimeoutError as Late

from rota.errors import StoreUnavailable
from rota.stores.redis.address import RedisAddress
from rota.stores.redis.connection import Connection
from rota.stores.redis.explaining import elsewhere, explain
from rota.stores.redis.resolver import Resolver
from rota.stores.redis.resp import Word
from rota.stores.redis.scripts import READS, script

PAUSES = (0.0, 0.05, 0.2, 0.5)
"""Seconds before each further try."""
PATIENCE = 2.0
"""Seconds after which there is no further try: whoever calls has retries of its own."""


class RedisClient:
    """Writes go over one connection, in their order; reads over others, so that a long one holds nobody up."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.resolver = Resolver(address)
        self.modern = False
        self._writing = Connection(self.resolver)
        self._reading = [Connection(self.resolver) for _ in range(1, address.max_connections)] or [self._writing]
        self._turns = itertools.cycle(self._reading)
        self._closed = False

    async def run(self, verb: str, *words: Word) -> Any:
        """One script, carried out at least once; twice is as good as once."""
        code = script(verb, self.modern)
        connection = next(self._turns) if verb in READS else self._writing
        try:
            return await self._patiently(connection, "EVALSHA", code.sha, 1, self.address.root, *words)
        except NoScriptError:  # a new server, or SCRIPT FLUSH
            return await self._plainly(connection, "EVAL", code.text, 1, self.address.root, *words)
        except RedisError as error:
            raise explain(error, self.address.shown) from error

    async def send(self, *command: Word) -> Any:
        """One command's answer."""
        return await self._plainly(self._writing, *command)

    async def _plainly(self, connection: Connection, *command: Word) -> Any:
        try:
            return await self._patiently(connection, *command)
        except RedisError as error:
            raise explain(error, self.address.shown) from error

    async def _patiently(self, connection: Connection, *command: Word) -> Any:
        """Errors that are an answer of the server come as they are."""
        began = time.monotonic()
        failure: Exception | None = None
        for pause in PAUSES:
            if self._closed:
                raise StoreUnavailable(f"{self.address.shown} is closed", passing=False)
            try:
                return await connection.send(*command)
            except (Broken, Late, OSError) as error:
                if isinstance(error, AuthenticationError):
                    raise
                failure = error
            except RedisError as error:
                if not elsewhere(error):
                    raise
                failure = error
                connection.drop()  # the server is another one now
            self.resolver.lost()
            if time.monotonic() - began > PATIENCE:
                break
            await asyncio.sleep(pause)
        assert failure is not None
        raise explain(failure, self.address.shown) from failure

    async def close(self) -> None:
        self._closed = True
        for connection in (self._writing, *self._reading):
            connection.drop()
