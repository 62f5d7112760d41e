"""The part of the Redis protocol that is needed to control a server without a client library."""

import socket
from pathlib import Path
from typing import BinaryIO

from storekit.servers.places import Address

Reply = str | int | None | list["Reply"]


class RedisError(RuntimeError):
    """The server answered with an error."""


def send(address: Address, *words: str, timeout: float = 5.0) -> Reply:
    """Send one command on a new connection, and return its reply."""
    with _connect(address, timeout) as connection, connection.makefile("rb") as replies:
        encoded = [word.encode() for word in words]
        request = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded)
        connection.sendall(b"*%d\r\n%b" % (len(encoded), request))
        return _read(replies)


def _connect(address: Address, timeout: float) -> socket.socket:
    if not isinstance(address, Path):
        return socket.create_connection(address, timeout)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(str(address))
    except OSError:
        connection.close()
        raise
    return connection


def _read(replies: BinaryIO) -> Reply:
    line = replies.readline()
    if not line:
        raise ConnectionResetError("the server closed the connection")
    kind, text = line[:1], line[1:-2].decode()
    match kind:
        case b"+":
            return text
        case b"-":
            raise RedisError(text)
        case b":":
            return int(text)
        case b"$":
            return None if text == "-1" else replies.read(int(text) + 2)[:-2].decode(errors="replace")
        case b"*":
            return None if text == "-1" else [_read(replies) for _ in range(int(text))]
        case _:
            raise RedisError(f"not a reply: {line!r}")
