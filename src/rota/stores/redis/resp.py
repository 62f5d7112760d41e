"""Wire: one connection's bytes. Requests leave when they are asked, answers come back in the order they were sent."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import hiredis
from redis.exceptions import ConnectionError as Broken
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as Late

from rota.stores.redis.resolver import REPLY_TIMEOUT

Word = str | bytes | int | float

_NOTHING = object()
_hiredis: Any = hiredis  # its own types know only commands of one word
_pack: Callable[[tuple[Word, ...]], bytes] = _hiredis.pack_command


def _refusal(said: str) -> RedisError:
    """What the server has against a request, its code in front."""
    return NoScriptError(said) if said.startswith("NOSCRIPT") else ResponseError(said)


class RespSocket(asyncio.Protocol):
    """Takes a connection that has logged in out of the driver's hands: its streams take several turns of the loop for
    each answer, and an idle worker that gets one run waits for every one of them.

    What was published goes to `told`, with its channel. Whoever is cancelled leaves the others alone.
    """

    def __init__(self, connection: Any, told: Callable[[bytes, bytes], None] | None = None) -> None:
        self.broken: RedisError | None = None
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._gone = asyncio.Event()
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self._replies = hiredis.Reader(replyError=_refusal, notEnoughData=_NOTHING)
        self._writer, connection._writer, connection._reader = connection._writer, None, None
        self._transport = self._writer.transport
        self._transport.set_protocol(self)

    async def send(self, *command: Word) -> Any:
        """The answer, or what the server had against it; Broken or Late if none came."""
        if self.broken is not None:
            raise self.broken
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((answer, self._loop.time() + REPLY_TIMEOUT))
        self._transport.write(_pack(command))
        if self._watch is None:
            self._watch = self._loop.call_later(REPLY_TIMEOUT, self._look)
        return await answer

    async def ended(self) -> None:
        """Returns when the connection has broken."""
        await self._gone.wait()

    def close(self, why: RedisError | None = None) -> None:
        """What is on its way gets no answer."""
        if self.broken is None:
            self.broken = why or Broken("the connection was given up")
            self._gone.set()
            if self._watch is not None:
                self._watch.cancel()
        for answer, _ in self._waiting:
            if not answer.done():
                answer.set_exception(Broken(str(self.broken)) if why is None else why)
        self._waiting.clear()
        self._writer.close()

    def data_received(self, data: bytes) -> None:
        self._replies.feed(data)
        try:
            while (reply := self._replies.gets()) is not _NOTHING:
                if isinstance(reply, RedisError):
                    self._answer(None, reply)
                elif self._told is not None and reply[0] == b"message":
                    self._told(reply[1], reply[2])
                else:
                    self._answer(reply)
        except hiredis.ProtocolError as error:
            self.close(Broken(f"this is no answer of a Redis server: {error}"))

    def _answer(self, reply: Any, error: RedisError | None = None) -> None:
        answer, _ = self._waiting.popleft()
        if answer.done():
            return
        if error is None:
            answer.set_result(reply)
        else:
            answer.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.close(Broken(str(exc or "") or "the server closed the connection"))

    def _look(self) -> None:
        """One timer for all that wait, because setting one for each would cost more than it is worth."""
        self._watch = None
        if not self._waiting:
            return
        left = self._waiting[0][1] - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._look)
        else:
            self.close(Late(f"no answer within {REPLY_TIMEOUT:.0f} s"))
