"""Callers that send slowly, or no HTTP: a connection that is opened and says nothing costs the service a place."""

import uuid
from asyncio import TimerHandle

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from rota.web.problems import MEDIA_TYPE, Problem

HEADERS_SECONDS = 10.0
"""Seconds within which a request has sent all its headers."""


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose next request does not come, or stops in its headers. uvicorn itself
    waits for ever for the first request, and for the rest of one that has begun."""

    _timer: TimerHandle | None = None

    def connection_made(self, transport: object) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]
        self._judge()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._judge()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, or has too long headers, as the service answers all errors."""
        words = "this is no HTTP request, or its first line and headers are too long"
        headers = [("Content-Type", MEDIA_TYPE), ("Connection", "close")]
        body = Problem(400, words).body(self.root_path, uuid.uuid4().hex)
        for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _judge(self) -> None:
        """Begin to wait, unless a request is being answered."""
        if self._waits():
            if self._timer is None:
                self._timer = self.loop.call_later(HEADERS_SECONDS, self._close)
        else:
            self._forget()

    def _waits(self) -> bool:
        asked: RequestResponseCycle | None = getattr(self, "cycle", None)  # None before the first request
        return asked is None or asked.response_complete

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if self._waits() and not self.transport.is_closing():
            self.transport.close()
