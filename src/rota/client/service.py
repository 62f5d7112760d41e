"""Service: a rota service (`rota serve`) as a program reaches it over HTTP, without any package."""

import asyncio
import http.client
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from rota.errors import InvalidOptions, ServiceError

API = "/api/v1"
TIMEOUT = 30.0
"""Seconds for an answer, beside those for which the service was asked to wait."""
MOST = 64 * 1024 * 1024
"""Bytes of an answer."""

Query = Mapping[str, "str | int | float | bool | Sequence[str] | None"]


class Answered:
    """An answer that is no error."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self) -> Any:
        return msgspec.json.decode(self.body) if self.body else None

    def record(self) -> dict[str, Any]:
        """Return the object of the answer without `now`, the store's time, which every answer has."""
        found: dict[str, Any] = self.json() or {}
        found.pop("now", None)
        return found


class Service:
    """Sends requests to one service. Each has a connection of its own, so that any thread may send."""

    def __init__(self, url: str, token: str | None = None) -> None:
        """`url`: http://host:port, https://host/prefix, or unix:/path of a socket."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https", "unix") or not (parts.hostname or parts.scheme == "unix"):
            raise InvalidOptions(f"{url!r} is no address of a rota service: write http://, https:// or unix:")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InvalidOptions("the address of a service has no user, query or fragment: send a token")
        self.url = url.rstrip("/")
        self._parts = parts
        self._prefix = "" if parts.scheme == "unix" else parts.path.rstrip("/")
        self._token = token

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Query | None = None,
        wait: float = 0.0,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """Send a request and return the answer. Raise ServiceError for an error, and if there is no answer."""
        return _Sending(self._connection(wait + TIMEOUT), self.url).send(
            method, self._target(path, query), None if body is None else msgspec.json.encode(body), self._head(headers)
        )

    async def call(self, method: str, path: str, body: object = None, wait: float = 0.0) -> Answered:
        """Send a request from an event loop. A call that is cancelled closes its connection."""
        sending = _Sending(self._connection(wait + TIMEOUT), self.url)
        encoded = None if body is None else msgspec.json.encode(body)
        try:
            return await asyncio.to_thread(sending.send, method, self._target(path, None), encoded, self._head(None))
        except asyncio.CancelledError:
            sending.abort()
            raise

    def _head(self, more: Mapping[str, str] | None) -> dict[str, str]:
        found = {"Accept": "application/json", **(more or {})}
        if self._token:
            found["Authorization"] = f"Bearer {self._token}"
        return found

    def _target(self, path: str, query: Query | None) -> str:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        words = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
        return self._prefix + path + (f"?{urlencode(words, doseq=True)}" if words else "")

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        parts = self._parts
        if parts.scheme == "unix":
            return _UnixConnection(parts.path, timeout)
        assert parts.hostname is not None
        if parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=context)
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)


def path_part(text: str) -> str:
    """Return a name as one part of a path."""
    return quote(text, safe="")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Sending:
    """One request under way."""

    def __init__(self, connection: http.client.HTTPConnection, url: str) -> None:
        self._connection = connection
        self._url = url
        self._lock = threading.Lock()
        self._aborted = False

    def send(self, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> Answered:
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        try:
            with self._lock:
                if self._aborted:
                    raise OSError("given up")
                self._connection.connect()
            self._connection.request(method, target, body, headers)
            answer = self._connection.getresponse()
            text = answer.read(MOST + 1)
        except (OSError, http.client.HTTPException) as error:
            raise ServiceError(f"{self._url} does not answer: {error!s:.200}") from None
        finally:
            self._connection.close()
        if len(text) > MOST:
            raise ServiceError(f"{self._url}: the answer has more than {MOST:,} bytes", 413)
        if answer.status >= 300:
            raise _refusal(self._url, answer.status, text)
        return Answered(answer.status, dict(answer.getheaders()), text)

    def abort(self) -> None:
        """Wake the thread that waits for an answer."""
        with self._lock:
            self._aborted = True
            connected = self._connection.sock
            if connected is not None:
                try:
                    connected.shutdown(socket.SHUT_RDWR)
                except OSError:
                    return


def _refusal(url: str, status: int, text: bytes) -> ServiceError:
    try:
        fields = msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError:
        fields = {}
    detail = fields.get("detail")
    return ServiceError(str(detail) if detail else f"{url} answers {status}: is it a rota service?", status, fields)
