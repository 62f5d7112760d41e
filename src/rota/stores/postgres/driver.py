"""asyncpg as this store uses it, and its complaints in plain words."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, cast, overload

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from rota.errors import StoreCorrupt, StoreError, StoreUnavailable

PATIENCE = 10.0
"""Seconds to wait for a connection."""
CALL_PATIENCE = 20.0
"""Seconds to wait for an answer: then the server is away, or frozen."""

Heard = Callable[[Any, int, str, str], None]


class Record(Protocol):
    """A row, by name or by place."""

    @overload
    def __getitem__(self, key: str | int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, key: str | int | slice) -> Any: ...
    def get(self, key: str) -> Any: ...
    def keys(self) -> Iterable[str]: ...


class Connection(Protocol):
    """What of asyncpg's connection is used."""

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Record]: ...
    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str: ...
    async def add_listener(self, channel: str, callback: Heard) -> None: ...
    async def close(self, *, timeout: float | None = None) -> None: ...
    def add_termination_listener(self, callback: Callable[[Any], None]) -> None: ...
    def transaction(self, *, isolation: str | None = None) -> AbstractAsyncContextManager[Any]: ...
    def terminate(self) -> None: ...
    def is_closed(self) -> bool: ...
    def get_server_pid(self) -> int: ...


pg: Any = cast(Any, asyncpg)

TRY_AGAIN: tuple[type[Exception], ...] = (
    pg.SerializationError,
    pg.DeadlockDetectedError,
    pg.UndefinedFunctionError,
    pg.InternalServerError,
)
"""The server has rolled the whole verb back: it may be sent again as it is. One that is under way while functions are
replaced may not find some of them, or look for them where they were."""
CUT: tuple[type[Exception], ...] = (
    pg.PostgresConnectionError,
    pg.InterfaceError,
    pg.ReadOnlySQLTransactionError,
    OSError,
    TimeoutError,
)
"""Nobody knows whether the verb was done; or it was not, because this server is a standby: another line may lead to the
primary."""
BAD_ROW: tuple[type[Exception], ...] = (pg.DataError, pg.InternalClientError, UnicodeEncodeError, OverflowError)
"""One row of a batch cannot be stored; the others can."""
ERRORS: tuple[type[Exception], ...] = (
    pg.PostgresError,
    pg.InterfaceError,
    pg.InternalClientError,
    OSError,
    TimeoutError,
)

_AWAY = ("57P", "08", "25006", "40", "53300", "57014", "55P03")
_GONE = ("42P01", "42883", "3F000", "42704", "XX001", "XX002")


async def connect(dsn: str) -> Connection:
    """Prepared statements are kept by name, which a pooler would mix up: `Lines` uses none behind one."""
    return cast(Connection, await pg.connect(dsn, timeout=PATIENCE, command_timeout=CALL_PATIENCE))


async def connect_plainly(dsn: str) -> Connection:
    return cast(
        Connection, await pg.connect(dsn, timeout=PATIENCE, command_timeout=CALL_PATIENCE, statement_cache_size=0)
    )


def explain(error: Exception, url: str) -> StoreError:
    """What happened, to which server, and what to do."""
    code = str(getattr(error, "sqlstate", None) or "")
    said = str(error) or type(error).__name__
    if code.startswith("28"):
        return StoreUnavailable(f"{url} does not let this user in ({said}); check its name and password", False)
    if code == "3D000":
        return StoreUnavailable(f"{url}: {said}; create it, or correct the URL (ROTA_URL)", False)
    if code == "42501":
        return StoreUnavailable(f"{url}: {said}; see the grants in docs/postgresql.md", False)
    if code.startswith("53") and code != "53300":
        return StoreUnavailable(f"{url} has no room left ({said}); nothing was lost", False)
    if code.startswith(_GONE):
        return StoreCorrupt(f"{url} holds no sound rota schema ({said}); restore it, or give rota a schema of its own")
    if code.startswith(_AWAY):
        return StoreUnavailable(f"{url} is away ({said})")
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{url} has not answered for {CALL_PATIENCE:.0f} s; is the server frozen?")
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return StoreUnavailable(f"{url} refused the connection; is the server running? (ROTA_URL)")
    if isinstance(error, CUT):
        return StoreUnavailable(f"{url} is away ({said})")
    return StoreUnavailable(f"{url}: {said}", passing=False)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def placeholders(args: Sequence[Any]) -> str:
    return ", ".join(f"${place}" for place in range(1, len(args) + 1))
