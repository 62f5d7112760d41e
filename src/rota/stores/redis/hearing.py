"""Hints from other processes: one subscribed connection per open store, for as long as somebody listens."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import msgspec
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError

from rota.errors import StoreError
from rota.store import Hint
from rota.stores.hub import Hub
from rota.stores.redis.finding import next_reply
from rota.stores.redis.link import Link

log = logging.getLogger("rota")

T = TypeVar("T")

PROOF = 2.0
"""Seconds within which a message to oneself must arrive."""
SILENCE = 60.0
"""Seconds of silence after which a connection must show that it lives."""
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0

_payloads = msgspec.msgpack.Decoder(tuple[list[str], list[str]])


async def prove(link: Link) -> bool:
    """Does a message to oneself arrive? Some proxies and ACLs swallow them without a word."""
    channel, token = f"{link.place.root}proof", uuid.uuid4().hex.encode()
    try:
        connection = await link.finder.connection()
        try:
            await connection.send_command("SUBSCRIBE", channel)
            await _within(PROOF, next_reply(connection))
            await link.ask("PUBLISH", channel, token)
            async with asyncio.timeout(PROOF):
                while (await _message(connection)) != token:
                    pass
        finally:
            await connection.disconnect(nowait=True)
    except (RedisError, StoreError, OSError) as error:
        log.warning("%s carries no hints, workers will poll: %s", link.place.shown, error)
        return False
    return True


async def _message(connection: AbstractConnection) -> bytes | None:
    """The next message; None for what is none."""
    answer: Any = await next_reply(connection)
    return bytes(answer[2]) if answer[0] == b"message" else None


async def _within(seconds: float, reading: Awaitable[T]) -> T:
    """As `asyncio.wait_for`, which in Python 3.11 misses a cancellation that comes together with the answer: a store
    that was closed while a hint arrived would never have closed."""
    async with asyncio.timeout(seconds):
        return await reading


class Ears:
    """Hears what the scripts publish, and tells the hub. A connection that was lost costs a resync."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._hub = Hub()
        self._listener: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[AsyncIterator[Hint]]:
        async with self._hub.subscribe() as hints:
            if self._listener is None:
                self._listener = asyncio.create_task(self._listen(), name="rota hears hints")
            with suppress(TimeoutError):
                async with asyncio.timeout(PROOF):  # without an ear there is still polling
                    await self._ready.wait()
            yield hints

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait((self._listener,))

    async def _listen(self) -> None:
        pause, heard_before = FIRST_PAUSE, False
        while True:
            try:
                connection = await self._link.finder.connection()
            except (RedisError, OSError) as error:
                log.debug("no hints from %s: %s", self._link.place.shown, error)
            else:
                try:
                    await self._hear(connection, heard_before)
                except (RedisError, OSError, TimeoutError) as error:
                    pause, heard_before = FIRST_PAUSE, True
                    log.info("hints from %s are interrupted: %s", self._link.place.shown, error)
                finally:
                    self._ready.clear()
                    self._link.finder.lost()
                    await connection.disconnect(nowait=True)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE)

    async def _hear(self, connection: AbstractConnection, again: bool) -> None:
        await connection.send_command("SUBSCRIBE", f"{self._link.place.root}hints")
        await _within(PROOF, next_reply(connection))
        self._ready.set()
        if again:
            self._hub.publish(Hint(resync=True))
        while True:
            try:
                payload = await _within(SILENCE, _message(connection))
            except TimeoutError:
                await connection.send_command("PING")
                payload = await _within(PROOF, _message(connection))
            if payload is not None:
                self._tell(payload)

    def _tell(self, payload: bytes) -> None:
        try:
            workers, runs = _payloads.decode(payload)
        except msgspec.DecodeError:  # of a newer version: something has changed, at least
            self._hub.publish(Hint(resync=True))
        else:
            self._hub.publish(Hint(workers=frozenset(workers), runs=frozenset(runs)))
