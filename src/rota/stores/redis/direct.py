"""Direct puts: a put of synchronous code, on a socket of its own, without an event loop and another thread.

It is the first try of a put, and has no second: whatever goes wrong, the caller sends the same put through the open
store, which retries, explains and reconnects. A put that is sent twice is done once.
"""

import time
from collections import deque
from threading import Lock
from typing import Any

import hiredis
from redis.connection import Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import NoScriptError, RedisError

from rota.domain.decision import Decision, Reason
from rota.domain.run import NewRun
from rota.forks import PerProcess
from rota.stores.redis.address import RedisAddress
from rota.stores.redis.client import WITHOUT_FUNCTIONS
from rota.stores.redis.library import library
from rota.stores.redis.msgpack import pack
from rota.stores.redis.records import new_item
from rota.stores.redis.resp import NoFunction, Word, packed, reply_error
from rota.stores.redis.rows import reason_of
from rota.stores.redis.scripts import script

PATIENCE = 1.0
"""Seconds for a connection, and for a reply."""
KEPT = 4
"""So many idle connections stay open: as many threads submit at a time without connecting anew."""


class _DirectSocket:
    """A connection that has logged in. The driver connects; its own way to read a reply takes longer than the reply."""

    def __init__(self, connection: Any) -> None:
        connection.connect()
        self._connection = connection  # it closes its socket when it is thrown away
        self._socket: Any = connection._sock
        self._socket.settimeout(PATIENCE)
        self._replies = hiredis.Reader(replyError=reply_error)

    def request(self, *request: Word) -> Any:
        """Return the reply; raises the error that the server replied, or an OSError."""
        self._socket.sendall(packed(request))
        while (reply := self._replies.gets()) is False:
            received = self._socket.recv(65536)
            if not received:
                raise ConnectionResetError("the server closed the connection")
            self._replies.feed(received)
        if isinstance(reply, RedisError):
            raise reply
        return reply

    def close(self) -> None:
        self._connection.disconnect()


class _Pool:
    """The idle connections of one process. It has some only while this process has a store of the backend open."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: deque[_DirectSocket] = deque()
        self.users = 0

    def open(self) -> None:
        with self._lock:
            self.users += 1

    def close(self) -> None:
        with self._lock:
            self.users -= 1
            left = [] if self.users > 0 else [self._idle.popleft() for _ in range(len(self._idle))]
        for direct in left:
            direct.close()

    def take(self) -> _DirectSocket | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give(self, direct: _DirectSocket) -> None:
        with self._lock:
            if self.users > 0 and len(self._idle) < KEPT:
                self._idle.append(direct)
                return
        direct.close()


class DirectPuts:
    """A fixed address only: the servers behind Sentinels and in a Cluster are found by the open store."""

    def __init__(self, address: RedisAddress) -> None:
        self.address = address
        self.modern = False
        self._scripts_until = 0.0
        self._pool = PerProcess(_Pool)

    def open(self) -> None:
        """A store is open from now on."""
        self._pool.get().open()

    def close(self) -> None:
        self._pool.get().close()

    def put(self, run: NewRun, skew: float, latest: float) -> tuple[float, Decision] | None:
        """Put `run`; return the store's time and the decision. None: nobody knows whether the store has the run."""
        pool = self._pool.get()
        if pool.users <= 0 or self.address.kind not in ("server", "socket"):
            return None
        words = (1, self.address.root, repr(skew), repr(latest), pack([new_item(run)]))
        direct, sound = None, False
        try:
            direct = pool.take() or _DirectSocket(self._connection())
            reply = self._request(direct, *words)
            sound = True
        except (RedisError, OSError):
            return None
        finally:  # also if a signal interrupts this: the next put would read the reply to this one
            if direct is not None:
                pool.give(direct) if sound else direct.close()
        if isinstance(reply, bytes):  # a plan is under way
            return None
        now, *refused = reply
        if refused:
            return float(now), Decision(refused[1].decode(), reason_of(refused[2]))
        return float(now), Decision(run.id, Reason.ACCEPTED)

    def _request(self, direct: _DirectSocket, *words: Word) -> Any:
        if self.modern and time.monotonic() >= self._scripts_until:
            try:
                return direct.request("FCALL", library().functions["put"], *words)
            except NoFunction:
                self._scripts_until = time.monotonic() + WITHOUT_FUNCTIONS
        code = script("put", self.modern)
        try:
            return direct.request("EVALSHA", code.sha, *words)
        except NoScriptError:
            return direct.request("EVAL", code.text, *words)

    def _connection(self) -> Any:
        address = self.address
        socket: Any = UnixDomainSocketConnection  # the driver's type hints fall short of what it does
        plain: Any = Connection
        options: dict[str, Any] = {
            "username": address.username,
            "password": address.password,
            "db": address.db,
            "socket_timeout": PATIENCE,
            "protocol": 2,
        }
        if address.kind == "socket":
            return socket(path=address.path, **options)
        host, port = address.hosts[0]
        options.update(host=host, port=port, socket_connect_timeout=PATIENCE, socket_keepalive=True)
        if address.tls:
            return SSLConnection(ssl_ca_certs=address.ca_certs, **options)
        return plain(**options)
