"""Hints from other processes. An open store has one subscribed connection, from its first listener on."""

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
"""Seconds within which a message of this process to itself must arrive."""
SILENCE = 60.0
"""Seconds between two PINGs: a subscribed connection gets no reply that would show that it still works."""
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0


class _Payload(msgspec.Struct, array_like=True):
    workers: list[str]
    runs: list[str]
    events: bool = False


_payloads = msgspec.msgpack.Decoder(_Payload)


async def prove(client: RedisClient) -> bool:
    """Whether a message that this process publishes arrives. Some proxies and ACLs drop messages without an error."""
    channel, token = f"{client.address.root}proof", uuid.uuid4().hex.encode()
    arrived = asyncio.Event()
    try:
        socket = RespSocket(
            await client.resolver.connection(), lambda _, message: arrived.set() if message == token else None
        )
        try:
            await socket.send("SUBSCRIBE", channel)
            await client.send("PUBLISH", channel, token)
            async with asyncio.timeout(PROOF):
                await arrived.wait()
        finally:
            socket.close()
    except (RedisError, StoreError, OSError) as error:
        log.warning("%s carries no hints, workers will poll: %s", client.address.shown, error)
        return False
    return True


class Subscriber:
    """Passes what the scripts publish to the hub. After a lost connection it publishes a resync, because messages that
    came in between are lost."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._hub = Hub()
        self._listener: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._channel = f"{client.address.root}hints"
        self._socket: RespSocket | None = None
        self._workers: set[str] = set()
        """The workers whose own channels this socket has subscribed to."""

    async def hears(self, worker: str) -> bool:
        """Whether a run that is handed to `worker` would arrive here. Subscribes to the channel of `worker`."""
        socket = self._socket
        if socket is None or worker in self._workers:
            return socket is not None
        try:
            await socket.send("SUBSCRIBE", f"{self._channel}:{worker}")
        except RedisError:
            return False
        if socket is self._socket:  # else the connection broke during the request
            self._workers.add(worker)
        return worker in self._workers

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[AsyncIterator[Hint]]:
        async with self._hub.subscribe() as hints:
            if self._listener is None:
                self._listener = asyncio.create_task(self._listen(), name="rota hears hints")
            with suppress(TimeoutError):
                async with asyncio.timeout(PROOF):  # without hints, workers poll
                    await self._ready.wait()
            yield hints

    async def close(self) -> None:
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait((self._listener,))

    async def _listen(self) -> None:
        backoff, interrupted = Backoff(FIRST_PAUSE, LAST_PAUSE), False
        while True:
            try:
                socket = RespSocket(await self._client.resolver.connection(), self._publish)
            except (RedisError, OSError) as error:
                log.debug("no hints from %s: %s", self._client.address.shown, error)
            else:
                try:
                    await self._serve(socket, interrupted)
                except RedisError as error:
                    interrupted = True
                    backoff.reset()
                    log.info("hints from %s are interrupted: %s", self._client.address.shown, error)
                finally:
                    self._ready.clear()
                    self._socket = None
                    self._workers.clear()
                    self._client.resolver.lost()
                    socket.close()
            await asyncio.sleep(backoff.pause())

    async def _serve(self, socket: RespSocket, again: bool) -> None:
        """Publish messages until the connection breaks; a PING finds that out. `again`: messages may have been lost."""
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

    def _publish(self, channel: bytes, payload: bytes) -> None:
        worker = channel.decode().removeprefix(self._channel).removeprefix(":")
        self._hub.publish(_handed(worker, payload) if worker else _hint(payload))


def _hint(payload: bytes) -> Hint:
    try:
        message = _payloads.decode(payload)
    except msgspec.DecodeError:  # a newer version wrote it: all that is known is that something has changed
        return Hint(resync=True)
    return Hint(workers=frozenset(message.workers), runs=frozenset(message.runs), events=message.events)


def _handed(worker: str, payload: bytes) -> Hint:
    """The handed run. If this version cannot read the run, the hint makes `worker` claim: the claim returns the run
    again and sets it aside."""
    reader = hiredis.Reader()
    reader.feed(payload)
    try:
        token, *words = reader.gets()
        (run,), _ = read_runs(words)
        return Handed(workers=frozenset((worker,)), worker=worker, token=token.decode(), run=run)
    except (hiredis.HiredisError, TypeError, ValueError, AttributeError):
        return Hint(workers=frozenset((worker,)))
