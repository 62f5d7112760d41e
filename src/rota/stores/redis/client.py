"""RedisClient: sends scripts and commands. Every verb can be sent twice, so a request without a reply is sent again."""

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
from rota.stores.redis.explain import elsewhere, explain
from rota.stores.redis.resolver import Resolver
from rota.stores.redis.resp import Word
from rota.stores.redis.scripts import READS, script

PAUSES = (0.0, 0.05, 0.2, 0.5)
"""Seconds before each further try."""
PATIENCE = 2.0
"""Seconds after which there is no third try. The callers of a store have retries of their own."""


class RedisClient:
    """Writes go over one connection, in their order. Reads go over the other connections, so that no write waits for a
    long read."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.resolver = Resolver(address)
        self.modern = False
        self._writing = Connection(self.resolver)
        self._reading = [Connection(self.resolver) for _ in range(1, address.max_connections)] or [self._writing]
        self._turns = itertools.cycle(self._reading)
        self._closed = False

    async def run(self, verb: str, *words: Word) -> Any:
        """Run the script of `verb` at least once; to run it twice has the effect of running it once."""
        code = script(verb, self.modern)
        connection = next(self._turns) if verb in READS else self._writing
        try:
            return await self._send(connection, "EVALSHA", code.sha, 1, self.address.root, *words)
        except NoScriptError:  # the server is new, or somebody sent SCRIPT FLUSH
            return await self._send(connection, "EVAL", code.text, 1, self.address.root, *words)

    async def send(self, *command: Word) -> Any:
        return await self._send(self._writing, *command)

    async def _send(self, connection: Connection, *command: Word) -> Any:
        """Try until a server replies. Raises NoScriptError as it is; all other errors become a StoreError.

        There are two tries at least. One is not enough: after a blocked event loop or a frozen process the first try
        is over at once, and the server was never asked.
        """
        began = time.monotonic()
        failure: Exception = Broken("not sent")
        for tries, pause in enumerate(PAUSES, start=1):
            if self._closed:
                raise StoreUnavailable(f"{self.address.shown} is closed", passing=False)
            try:
                return await connection.send(*command)
            except (Broken, Late, OSError) as error:
                failure = error
                if isinstance(error, AuthenticationError):
                    break
            except NoScriptError:
                raise
            except RedisError as error:
                failure = error
                if not elsewhere(error):
                    break
                connection.drop()  # after a failover, the next try must reach another server
            self.resolver.lost()
            if tries > 1 and time.monotonic() - began > PATIENCE:
                break
            await asyncio.sleep(pause)
        raise explain(failure, self.address.shown) from failure

    async def close(self) -> None:
        self._closed = True
        for connection in (self._writing, *self._reading):
            connection.drop()
