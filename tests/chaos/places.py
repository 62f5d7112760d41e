"""Where a chaos run keeps its store: a file, or a server of its own behind a proxy that can cut and freeze."""

import asyncio
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

import asyncpg

from storekit.proxy import FaultProxy
from storekit.servers import PostgresServer, RedisServer, postgres_of_wheel, valkey_of_wheel

StoreName = Literal["sqlite", "redis", "postgres"]


class Place:
    """A store that everybody reaches through `url`; the checker reaches it through `direct_url`."""

    def __init__(self, url: str, direct_url: str) -> None:
        self.url = url
        self.direct_url = direct_url

    def is_locked(self) -> bool:
        """Whether a process holds a lock that would stop all the others, should that process be frozen now."""
        return False


class FilePlace(Place):
    """An SQLite file: there is no connection to cut and no server to kill."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"sqlite:///{path}", f"sqlite:///{path}")
        self._path = path

    def is_locked(self) -> bool:
        with closing(sqlite3.connect(self._path, timeout=0.05, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            except sqlite3.OperationalError:
                return True
        return False


class ServerPlace(Place):
    def __init__(self, server: RedisServer | PostgresServer, proxy: FaultProxy) -> None:
        super().__init__(server.url_at(proxy.address), server.url)
        self.server = server
        self.proxy = proxy

    def drop_clients(self) -> None:
        """The server closes some or all of its clients' connections."""
        if isinstance(self.server, RedisServer):
            self.server.send("CLIENT", "KILL", "TYPE", "normal")
        else:
            asyncio.run(terminate_some(self.server.url))


async def terminate_some(url: str) -> None:
    """End about half of the backends of this PostgreSQL, as an operator or a failover does."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND random() < 0.5"
        )
    finally:
        await connection.close()


@contextmanager
def place_of(store: StoreName, folder: Path) -> Generator[Place]:
    if store == "sqlite":
        yield FilePlace(folder / "rota.db")
        return
    server = RedisServer(valkey_of_wheel()) if store == "redis" else PostgresServer(postgres_of_wheel())
    with server, FaultProxy(server.address) as proxy:
        yield ServerPlace(server, proxy)
