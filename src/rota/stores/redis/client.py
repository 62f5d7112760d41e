"""RedisClient: sends verbs and commands. A verb is a function that the server keeps, or else a script.

Every verb can be sent twice, so a request without a reply is sent again.
"""

import asyncio
import itertools
import logging
import time
from contextlib import suppress
from typing import Any

from redis.exceptions import AuthenticationError, NoScriptError, RedisError
from redis.exceptions import ConnectionError as Broken
from redis.exceptions import TimeoutError as Late

from rota.errors import StoreUnavailable
from rota.stores.redis.address import RedisAddress
from rota.stores.redis.connection import Connection
from rota.stores.redis.explain import elsewhere, explain
from rota.stores.redis.library import PREFIX, library
from rota.stores.redis.resolver import Resolver
from rota.stores.redis.resp import NoFunction, Word
from rota.stores.redis.scripts import READS, script

PAUSES = (0.0, 0.05, 0.2, 0.5)
"""Seconds before each further try."""
PATIENCE = 2.0
"""Seconds after which there is no third try. The callers of a store have retries of their own."""
WITHOUT_FUNCTIONS = 60.0
"""Seconds after which a server that refused functions is asked again."""
LIBRARIES_KEPT = 4
"""So many libraries of rota may be on a server: those of versions that serve it at the same time."""

NOT_SENT = Broken("not sent")

log = logging.getLogger("rota")


class RedisClient:
    """Writes go over one connection, in their order. Reads go over the other connections, so that no write waits for a
    long read."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.resolver = Resolver(address)
        self.modern = False
        self._scripts_until = 0.0
        """Until then, by the clock of this process, verbs are scripts, because the server refused functions."""
        self._writing = Connection(self.resolver)
        self._reading = [Connection(self.resolver) for _ in range(1, address.max_connections)] or [self._writing]
        self._turns = itertools.cycle(self._reading)
        self._closed = False

    async def run(self, verb: str, *words: Word) -> Any:
        """Run `verb` at least once; to run it twice has the effect of running it once."""
        connection = next(self._turns) if verb in READS else self._writing
        if self.modern and time.monotonic() >= self._scripts_until:
            request: tuple[Word, ...] = "FCALL", library().functions[verb], 1, self.address.root, *words
            try:
                return await self._send(connection, *request)
            except NoFunction as refused:  # the server is new to this version, or somebody sent FUNCTION FLUSH
                if refused.may_load:
                    with suppress(NoFunction):
                        await self._load(connection)
                        return await self._send(connection, *request)
            self._scripts_until = time.monotonic() + WITHOUT_FUNCTIONS
        return await self._run_script(connection, verb, *words)

    async def _load(self, connection: Connection) -> None:
        """Give the server the library. If it has many of them, take away those of other versions: a version that still
        works gives the server its own again."""
        try:
            await self._send(connection, "FUNCTION", "LOAD", library().text)
            known = await self._send(connection, "FUNCTION", "LIST", "LIBRARYNAME", f"{PREFIX}*")
            names = [facts[facts.index(b"library_name") + 1].decode() for facts in known]
            for name in names if len(names) > LIBRARIES_KEPT else ():
                if name != library().name:
                    await self._send(connection, "FUNCTION", "DELETE", name)
        except (
            StoreUnavailable
        ) as error:  # another client has loaded it, or the server refuses: then the next call tells
            log.debug("%s: %s", self.address.shown, error)

    async def _run_script(self, connection: Connection, verb: str, *words: Word) -> Any:
        code = script(verb, self.modern)
        try:
            return await self._send(connection, "EVALSHA", code.sha, 1, self.address.root, *words)
        except NoScriptError:  # the server is new, or somebody sent SCRIPT FLUSH
            return await self._send(connection, "EVAL", code.text, 1, self.address.root, *words)

    async def send(self, *command: Word) -> Any:
        return await self._send(self._writing, *command)

    async def _send(self, connection: Connection, *command: Word) -> Any:
        """Try until a server replies. Raises NoScriptError and NoFunction as they are; others become a StoreError.

        There are two tries at least. One is not enough: after a blocked event loop or a frozen process the first try
        is over at once, and the server was never asked.
        """
        began = time.monotonic()
        failure: Exception = NOT_SENT
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
