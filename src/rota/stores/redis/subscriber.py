"""Hints from other processes: one subscribed connection per open store, for as long as somebody listens."""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

import hiredis
import msgspec
from redis.exceptions import RedisError

from rota.domain.backoff import Backoff
from rota.errors import StoreError
from rota.store import Handed, Hint
from rota.stores.hub import Hub
from rota.stores.redis.client import RedisClient
from rota.stores.redis.records import read_runs
from rota.stores.redis.resp import RespSocket

log = logging.getLogger("rota")

PROOF = 2.0
"""Seconds within which a message to oneself must arrive."""
SILENCE = 60.0
"""Seconds between two questions whether a connection still lives."""
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0

_payloads = msgspec.msgpack.Decoder(tuple[list[str], list[str]])


async def prove(client: RedisClient) -> bool:
    """Does a message to oneself arrive? Some proxies and ACLs swallow them without a word."""
    channel, token = f"{client.address.root}proof", uuid.uuid4().hex.encode()
    heard = asyncio.Event()
    try:
        socket = RespSocket(
            await client.resolver.connection(), lambda _, message: heard.set() if message == token else None
        )
        try:
            await socket.send("SUBSCRIBE", channel)
            await client.send("PUBLISH", channel, token)
            async with asyncio.timeout(PROOF):
                await heard.wait()
        finally:
            socket.close()
    except (RedisError, StoreError, OSError) as error:
        log.warning("%s carries no hints, workers will poll: %s", client.address.shown, error)
        return False
    return True


class Subscriber:
    """Hears what the scripts publish, and tells the hub. A connection that was lost costs a resync."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._hub = Hub()
        self._listener: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._channel = f"{client.address.root}hints"
        self._socket: RespSocket | None = None
        self._attended: set[str] = set()

    async def attends(self, worker: str) -> bool:
        """Whether what is handed to this worker would be heard here."""
        socket = self._socket
        if socket is None or worker in self._attended:
            return socket is not None
        try:
            await socket.send("SUBSCRIBE", f"{self._channel}:{worker}")
        except RedisError:
            return False
        if socket is self._socket:
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
        backoff, heard_before = Backoff(FIRST_PAUSE, LAST_PAUSE), False
        while True:
            try:
                socket = RespSocket(await self._client.resolver.connection(), self._tell)
            except (RedisError, OSError) as error:
                log.debug("no hints from %s: %s", self._client.address.shown, error)
            else:
                try:
                    await self._hear(socket, heard_before)
                except RedisError as error:
                    heard_before = True
                    backoff.reset()
                    log.info("hints from %s are interrupted: %s", self._client.address.shown, error)
                finally:
                    self._ready.clear()
                    self._socket = None
                    self._attended.clear()
                    self._client.resolver.lost()
                    socket.close()
            await asyncio.sleep(backoff.pause())

    async def _hear(self, socket: RespSocket, again: bool) -> None:
        """Until the connection breaks: now and then it must show that it lives."""
        await socket.send("SUBSCRIBE", self._channel)
        self._socket = socket
        self._ready.set()
        if again:
            self._hub.publish(Hint(resync=True))
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SILENCE):
                    await socket.ended()
            await socket.send("PING")

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
        return Handed(workers=frozenset((worker,)), worker=worker, token=token.decode(), run=run)
    except (hiredis.HiredisError, TypeError, ValueError, AttributeError):
        return Hint(workers=frozenset((worker,)))
