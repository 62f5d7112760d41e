"""RespSocket: the bytes of one connection. A request leaves at once; replies come in the order of the requests."""

import asyncio
import re
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
_hiredis: Any = hiredis  # its type hints allow only commands of one word
packed: Callable[[tuple[Word, ...]], bytes] = _hiredis.pack_command


class NoFunction(NoScriptError):
    """The server does not have the function, does not let this user call functions, or does not know FCALL."""

    @property
    def may_load(self) -> bool:
        return str(self).startswith("ERR Function not found")


_NO_FUNCTION = re.compile(r"ERR Function not found|ERR unknown command .?FCALL\b|NOPERM .*\bfcall\b", re.IGNORECASE)


def reply_error(message: str) -> RedisError:
    """The error for an error reply; its message begins with the code of the server."""
    if message.startswith("NOSCRIPT"):
        return NoScriptError(message)
    return NoFunction(message) if _NO_FUNCTION.match(message) else ResponseError(message)


class RespSocket(asyncio.Protocol):
    """Takes over the transport of `connection`, which has logged in.

    The driver's streams take several turns of the event loop for each reply, and a run that comes to an idle worker
    would wait for all of them. `on_message` gets the channel and the payload of each published message. A caller that
    is cancelled does not disturb the others: its reply is read and dropped.
    """

    def __init__(self, connection: Any, on_message: Callable[[bytes, bytes], None] | None = None) -> None:
        self.broken: RedisError | None = None
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._gone = asyncio.Event()
        self._waiting: deque[tuple[asyncio.Future[Any], float]] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self._replies = hiredis.Reader(replyError=reply_error, notEnoughData=_NOTHING)
        self._writer, connection._writer, connection._reader = connection._writer, None, None
        self._transport = self._writer.transport
        self._transport.set_protocol(self)

    def send(self, *command: Word) -> asyncio.Future[Any]:
        """Return the reply to come: the error that the server replies, or Broken or Late if no reply comes. A broken
        connection raises at once."""
        if self.broken is not None:
            raise self.broken
        answer: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.append((answer, self._loop.time() + REPLY_TIMEOUT))
        self._transport.write(packed(command))
        if self._watch is None:
            self._watch = self._loop.call_later(REPLY_TIMEOUT, self._check_oldest)
        return answer

    async def ended(self) -> None:
        """Wait until the connection breaks."""
        await self._gone.wait()

    def close(self, why: RedisError | None = None) -> None:
        """Requests without a reply raise `why`, or Broken."""
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
                elif self._on_message is not None and reply[0] == b"message":
                    self._on_message(reply[1], reply[2])
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

    def _check_oldest(self) -> None:
        """Close the connection if the oldest request has waited too long. One timer serves all requests: a timer
        for each of them would cost too much time."""
        self._watch = None
        if not self._waiting:
            return
        left = self._waiting[0][1] - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._check_oldest)
        else:
            self.close(Late(f"no answer within {REPLY_TIMEOUT:.0f} s"))
