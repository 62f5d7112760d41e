"""Hints from other processes: one subscribed connection per open store, for as long as somebody listens."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import hiredis
import msgspec
from redis.exceptions import RedisError

from rota.errors import StoreError
from rota.store import Handed, Hint
from rota.stores.hub import Hub
from rota.stores.redis.link import Link
from rota.stores.redis.records import read_runs
from rota.stores.redis.wire import Wire

log = logging.getLogger("rota")

PROOF = 2.0
"""Seconds within which a message to oneself must arrive."""
SILENCE = 60.0
"""Seconds between two questions whether a connection still lives."""
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0

_payloads = msgspec.msgpack.Decoder(tuple[list[str], list[str]])


async def prove(link: Link) -> bool:
    """Does a message to oneself arrive? Some proxies and ACLs swallow them without a word."""
    channel, token = f"{link.place.root}proof", uuid.uuid4().hex.encode()
    heard = asyncio.Event()
    try:
        wire = Wire(await link.finder.connection(), lambda _, message: heard.set() if message == token else None)
        try:
            await wire.ask("SUBSCRIBE", channel)
            await link.ask("PUBLISH", channel, token)
            async with asyncio.timeout(PROOF):
                await heard.wait()
        finally:
            wire.close()
    except (RedisError, StoreError, OSError) as error:
        log.warning("%s carries no hints, workers will poll: %s", link.place.shown, error)
        return False
    return True


class Ears:
    """Hears what the scripts publish, and tells the hub. A connection that was lost costs a resync."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._hub = Hub()
        self._listener: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._channel = f"{link.place.root}hints"
        self._wire: Wire | None = None
        self._attended: set[str] = set()

    async def attends(self, worker: str) -> bool:
        """Whether what is handed to this worker would be heard here."""
        wire = self._wire
        if wire is None or worker in self._attended:
            return wire is not None
        try:
            await wire.ask("SUBSCRIBE", f"{self._channel}:{worker}")
        except RedisError:
            return False
        if wire is self._wire:
            self._attended.add(worker)
        return worker in self._attended

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
                wire = Wire(await self._link.finder.connection(), self._tell)
            except (RedisError, OSError) as error:
                log.debug("no hints from %s: %s", self._link.place.shown, error)
            else:
                try:
                    await self._hear(wire, heard_before)
                except RedisError as error:
                    pause, heard_before = FIRST_PAUSE, True
                    log.info("hints from %s are interrupted: %s", self._link.place.shown, error)
                finally:
                    self._ready.clear()
                    self._wire = None
                    self._attended.clear()
                    self._link.finder.lost()
                    wire.close()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE)

    async def _hear(self, wire: Wire, again: bool) -> None:
        """Until the connection breaks: now and then it must show that it lives."""
        await wire.ask("SUBSCRIBE", self._channel)
        self._wire = wire
        self._ready.set()
        if again:
            self._hub.publish(Hint(resync=True))
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SILENCE):
                    await wire.ended()
            await wire.ask("PING")

    def _tell(self, channel: bytes, payload: bytes) -> None:
        worker = channel.decode().removeprefix(self._channel).removeprefix(":")
        self._hub.publish(_handed(worker, payload) if worker else _hint(payload))


def _hint(payload: bytes) -> Hint:
    try:
        workers, runs = _payloads.decode(payload)
    except msgspec.DecodeError:  # of a newer version: something has changed, at least
        return Hint(resync=True)
    return Hint(workers=frozenset(workers), runs=frozenset(runs))


def _handed(worker: str, payload: bytes) -> Hint:
    """What cannot be read comes again with the next claim, which knows what to do with it."""
    reader = hiredis.Reader()
    reader.feed(payload)
    try:
        token, *words = reader.gets()
        (run,), _ = read_runs(words)
        handed = Handed(worker, token.decode(), run)
    except (hiredis.HiredisError, TypeError, ValueError, AttributeError):
        handed = None
    return Hint(workers=frozenset((worker,)), handed=handed)
