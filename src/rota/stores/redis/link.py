"""Link: scripts to the server, their answers back. Every verb may be sent again, so a lost reply costs a moment."""

import asyncio
import itertools
import time
from typing import Any

from redis.exceptions import AuthenticationError, NoScriptError, RedisError
from redis.exceptions import ConnectionError as Broken
from redis.exceptions import TimeoutError as Late

from rota.errors import StoreUnavailable
from rota.stores.redis.explaining import elsewhere, explain
from rota.stores.redis.finding import Finder
from rota.stores.redis.line import Line
from rota.stores.redis.place import Place
from rota.stores.redis.scripts import READS, script
from rota.stores.redis.wire import Word

PAUSES = (0.0, 0.05, 0.2, 0.5)
"""Seconds before each further try."""
PATIENCE = 2.0
"""Seconds after which there is no further try: whoever calls has retries of its own."""


class Link:
    """Writes go over one connection, in their order; reads over others, so that a long one holds nobody up."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.finder = Finder(place)
        self.modern = False
        self._writing = Line(self.finder)
        self._reading = [Line(self.finder) for _ in range(1, place.max_connections)] or [self._writing]
        self._turns = itertools.cycle(self._reading)
        self._closed = False

    async def run(self, verb: str, *words: Word) -> Any:
        """One script, carried out at least once; twice is as good as once."""
        code = script(verb, self.modern)
        line = next(self._turns) if verb in READS else self._writing
        try:
            return await self._patiently(line, "EVALSHA", code.sha, 1, self.place.root, *words)
        except NoScriptError:  # a new server, or SCRIPT FLUSH
            return await self._plainly(line, "EVAL", code.text, 1, self.place.root, *words)
        except RedisError as error:
            raise explain(error, self.place.shown) from error

    async def ask(self, *command: Word) -> Any:
        """One command's answer."""
        return await self._plainly(self._writing, *command)

    async def _plainly(self, line: Line, *command: Word) -> Any:
        try:
            return await self._patiently(line, *command)
        except RedisError as error:
            raise explain(error, self.place.shown) from error

    async def _patiently(self, line: Line, *command: Word) -> Any:
        """Errors that are an answer of the server come as they are."""
        began = time.monotonic()
        failure: Exception | None = None
        for pause in PAUSES:
            if self._closed:
                raise StoreUnavailable(f"{self.place.shown} is closed", passing=False)
            try:
                return await line.ask(*command)
            except (Broken, Late, OSError) as error:
                if isinstance(error, AuthenticationError):
                    raise
                failure = error
            except RedisError as error:
                if not elsewhere(error):
                    raise
                failure = error
                line.drop()  # the server is another one now
            self.finder.lost()
            if time.monotonic() - began > PATIENCE:
                break
            await asyncio.sleep(pause)
        assert failure is not None
        raise explain(failure, self.place.shown) from failure

    async def close(self) -> None:
        self._closed = True
        for line in (self._writing, *self._reading):
            line.drop()
