"""Bare loops: the least that keeps rows in a store and takes them out again, without any promise of rota's."""

import asyncio
import socket
import sqlite3
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import asyncpg
import msgspec

from storekit.servers import RedisServer

TAKEN = 100
"""Rows that are taken out at once, as a worker with so many seats does."""


class Bare(Protocol):
    async def put(self, rows: Sequence[int]) -> None:
        """Keep one row for each number, in one transaction."""
        ...

    async def take(self, count: int) -> None:
        """Take out so many rows, TAKEN at a time, each time in two transactions: one takes them, one records it."""
        ...


def body_of(row: int) -> bytes:
    return msgspec.json.encode({"v": 1, "args": {"i": row}})


class BareMemory:
    """A deque, and a task of asyncio for each row."""

    def __init__(self) -> None:
        self._rows: deque[bytes] = deque()

    async def put(self, rows: Sequence[int]) -> None:
        self._rows.extend(body_of(row) for row in rows)

    async def take(self, count: int) -> None:
        for _ in range(0, count, TAKEN):
            bodies = [self._rows.popleft() for _ in range(min(TAKEN, len(self._rows)))]
            await asyncio.gather(*(self._call(body) for body in bodies))

    async def _call(self, body: bytes) -> None:
        msgspec.json.decode(body)


class BareSqlite:
    """Two tables of a file with the settings of rota: WAL, and an fsync per commit."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "CREATE TABLE waiting (seq INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB);"
            "CREATE TABLE taken (seq INTEGER PRIMARY KEY, body BLOB)"
        )

    async def put(self, rows: Sequence[int]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO waiting (body) VALUES (?)", [(body_of(row),) for row in rows])
        self._connection.execute("COMMIT")

    async def take(self, count: int) -> None:
        for _ in range(0, count, TAKEN):
            self._connection.execute("BEGIN IMMEDIATE")
            rows = self._connection.execute(
                "DELETE FROM waiting WHERE seq IN (SELECT seq FROM waiting ORDER BY seq LIMIT ?) RETURNING seq, body",
                (TAKEN,),
            ).fetchall()
            self._connection.execute("COMMIT")
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO taken (seq, body) VALUES (?, ?)", rows)
            self._connection.execute("COMMIT")


class BareRedis:
    """A sorted set and a string per row, in pipelines on one connection."""

    def __init__(self, server: RedisServer) -> None:
        address = server.address
        if isinstance(address, Path):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(str(address))
        else:
            self._socket = socket.create_connection(address)
        self._replies = self._socket.makefile("rb")

    async def put(self, rows: Sequence[int]) -> None:
        commands = [[b"SET", b"bare:%d" % row, body_of(row)] for row in rows]
        places = [word for row in rows for word in (b"%d" % row, b"%d" % row)]
        self._send([*commands, [b"ZADD", b"bare", *places]])

    async def take(self, count: int) -> None:
        for _ in range(0, count, TAKEN):
            (found,) = self._send([[b"ZPOPMIN", b"bare", b"%d" % TAKEN]])
            names = [b"bare:" + name for name in found[::2]]
            self._send([[b"MGET", *names]])
            self._send([[b"DEL", *names]])

    def _send(self, commands: list[list[bytes]]) -> list[list[bytes]]:
        self._socket.sendall(
            b"".join(
                b"*%d\r\n%b" % (len(words), b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
                for words in commands
            )
        )
        return [self._read() for _ in commands]

    def _read(self) -> list[bytes]:
        """Return the items of a reply; a simple reply has one."""
        line = self._replies.readline()
        if line.startswith(b"*"):
            return [self._read()[0] for _ in range(int(line[1:]))]
        if line.startswith(b"$"):
            return [self._replies.read(int(line[1:]) + 2)[:-2]]
        if line.startswith(b"-"):
            raise RuntimeError(line.decode())
        return [line]


class BarePostgres:
    """Two tables, each batch one statement."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> "BarePostgres":
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE waiting (seq bigserial PRIMARY KEY, body bytea)")
        await connection.execute("CREATE TABLE taken (seq bigint PRIMARY KEY, body bytea)")
        return cls(connection)

    async def put(self, rows: Sequence[int]) -> None:
        await self._connection.execute(
            "INSERT INTO waiting (body) SELECT unnest($1::bytea[])", [body_of(row) for row in rows]
        )

    async def take(self, count: int) -> None:
        for _ in range(0, count, TAKEN):
            rows = await self._connection.fetch(
                "DELETE FROM waiting WHERE seq = ANY(ARRAY(SELECT seq FROM waiting ORDER BY seq LIMIT $1 "
                "FOR UPDATE SKIP LOCKED)) RETURNING seq, body",
                TAKEN,
            )
            await self._connection.execute(
                "INSERT INTO taken SELECT * FROM unnest($1::bigint[], $2::bytea[])",
                [row["seq"] for row in rows],
                [row["body"] for row in rows],
            )
