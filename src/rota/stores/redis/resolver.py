"""Resolver: finds the server of the namespace. This is a fixed address, the primary that sentinels name, or the cluster
node that has the slot of the namespace."""

import asyncio
from collections.abc import Sequence
from typing import Any

from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import ConnectionError as Broken
from redis.exceptions import RedisError

from rota.stores.redis.address import Endpoint, RedisAddress

CONNECT_TIMEOUT = 2.0
REPLY_TIMEOUT = 3.0
"""Seconds. A submit tries for twenty seconds in all, so one request must fail in a few."""


class Resolver:
    """Opens connections to the server that has the namespace now, and keeps its address until `lost` is called."""

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._found: Endpoint | None = None if address.kind in ("sentinel", "cluster") else (*address.hosts, ("", 0))[0]

    def lost(self) -> None:
        if self._address.kind in ("sentinel", "cluster"):
            self._found = None

    async def connection(self) -> Any:
        """Return a new connection, which has logged in. It has no timeout for replies: the caller sets one."""
        if self._found is None:
            self._found = await (self._primary() if self._address.kind == "sentinel" else self._node())
        connection: Any = self._made(self._found)
        try:
            async with asyncio.timeout(REPLY_TIMEOUT):
                await connection.connect()
        except BaseException:
            self.lost()
            await connection.disconnect(nowait=True)
            raise
        return connection

    def _made(self, endpoint: Endpoint, sentinel: bool = False) -> AbstractConnection:
        address = self._address
        options: dict[str, Any] = {
            "username": address.sentinel_username if sentinel else address.username,
            "password": address.sentinel_password if sentinel else address.password,
            "db": 0 if sentinel else address.db,
            "socket_timeout": None,  # the driver would use `wait_for`, which can miss a cancellation in Python 3.11
            "socket_connect_timeout": CONNECT_TIMEOUT,
            "retry": Retry(NoBackoff(), 0),  # the driver would send a verb twice without our knowing
            "protocol": 2,
        }
        if address.kind == "socket":
            return UnixDomainSocketConnection(path=address.path, **options)
        options.update(host=endpoint[0], port=endpoint[1], socket_keepalive=True)
        if address.tls:
            return SSLConnection(ssl_ca_certs=address.ca_certs, **options)
        return Connection(**options)

    async def _primary(self) -> Endpoint:
        """The primary, as the first sentinel that knows the service names it."""
        answer = await self._send(("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.service), sentinel=True)
        if not answer:
            raise Broken(f"no sentinel knows {self._address.service!r}")
        return answer[0].decode(), int(answer[1])

    async def _node(self) -> Endpoint:
        slot = key_slot(self._address.root.encode())
        for first, last, node, *_ in await self._send(("CLUSTER", "SLOTS")):
            if first <= slot <= last:
                return node[0].decode() or self._address.hosts[0][0], int(node[1])
        raise Broken(f"no node of the cluster has slot {slot}")

    async def _send(self, command: Sequence[str], sentinel: bool = False) -> list[Any]:
        """Return the first reply that is not empty, of any host; raises the last error if all replies are empty."""
        error: Exception | None = None
        for endpoint in self._address.hosts:
            connection: Any = self._made(endpoint, sentinel)  # the driver gives its methods no types
            try:
                async with asyncio.timeout(REPLY_TIMEOUT):
                    await connection.connect()
                    await connection.send_command(*command)
                    answer: list[Any] | None = await connection.read_response(disconnect_on_error=False)
                if answer:
                    return answer
            except (RedisError, OSError) as failed:
                error = failed
            finally:
                await connection.disconnect(nowait=True)
        if error is not None:
            raise error
        return []
