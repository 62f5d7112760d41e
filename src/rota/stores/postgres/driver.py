"""asyncpg as this store uses it, and its complaints in plain words."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Any, Protocol, cast, overload

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from rota.errors import StoreCorrupt, StoreError, StoreUnavailable, Unstorable

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

ERRORS: tuple[type[Exception], ...] = (
    pg.PostgresError,
    pg.InterfaceError,
    pg.InternalClientError,
    OSError,
    TimeoutError,
)


class Fault(Enum):
    """What an error of the driver means for the verb that met it, and for the connection."""

    ROLLED_BACK = auto()
    """The server undid the whole verb, because it met another verb or new functions: send it again as it is."""
    BAD_VALUE = auto()
    """Proven: PostgreSQL cannot store a value of the batch. The other batches that share the call can be stored."""
    BAD_ROW = auto()
    """A function met a value that it can neither read nor write. It may stand in a row that the function read, so it
    proves nothing about the batch. The other batches that share the call may be stored."""
    REFUSED = auto()
    """The server answered, and answers the same next time: no login, no grant, no room, no schema."""
    AWAY = auto()
    """All the rest. Nobody knows whether the verb was done, nor what the connection answers next."""


_ROLLED_BACK = frozenset({"40001", "40P01", "55P03", "42883", "XX000"})
"""Serialization failure, deadlock, a lock that was not waited for, undefined function, internal error: the last two
befall a verb that is under way while functions are replaced."""
_BAD_VALUE = ("22", "54000")
"""Data exceptions, and what is too large for an index or a row. Such an error proves that an argument is bad only if it
is raised while the arguments are read: by asyncpg, which encodes them, or by the server before the function begins. All
verbs are functions in PL/pgSQL, and the server names these in the context of an error that is raised inside one, in
every language that it speaks. Endings are stored as they are: no function reads what stands in them."""
_GONE = ("42P01", "3F000", "42704", "XX001", "XX002")
_REFUSED = ("28", "3D000", "42501", "53", *_GONE)
_PASSING = ("53300",)
"""Too many connections: the one of the class 53 that is over in a moment."""


def fault_of(error: BaseException) -> Fault:
    """Judge by the SQLSTATE that the server sent. An error without one says nothing about the value: asyncpg raises
    InternalClientError ("cannot switch to state 12") on a connection whose end it has read but not yet handled."""
    if isinstance(error, UnicodeEncodeError | OverflowError):
        return Fault.BAD_VALUE
    code = _sqlstate(error)
    if code in _ROLLED_BACK:
        return Fault.ROLLED_BACK
    if code.startswith(_BAD_VALUE):
        inside = "PL/pgSQL" in str(getattr(error, "context", None) or "")
        return Fault.BAD_ROW if inside else Fault.BAD_VALUE
    if code.startswith(_REFUSED) and code not in _PASSING:
        return Fault.REFUSED
    return Fault.AWAY


def _sqlstate(error: BaseException) -> str:
    return str(getattr(error, "sqlstate", None) or "") if isinstance(error, pg.PostgresError) else ""


async def connect(dsn: str) -> Connection:
    """Prepared statements are kept by name, which a pooler would mix up: `Lines` uses none behind one."""
    return cast(Connection, await pg.connect(dsn, timeout=PATIENCE, command_timeout=CALL_PATIENCE))


async def connect_plainly(dsn: str) -> Connection:
    return cast(
        Connection, await pg.connect(dsn, timeout=PATIENCE, command_timeout=CALL_PATIENCE, statement_cache_size=0)
    )


def explain(error: Exception, url: str) -> StoreError:
    """What happened, to which server, and what to do."""
    code = _sqlstate(error)
    said = str(error) or type(error).__name__
    if fault_of(error) is Fault.BAD_VALUE:
        return Unstorable(f"{url} cannot store this value: {said}")
    if fault_of(error) is Fault.BAD_ROW:
        return StoreCorrupt(f"{url} met a bad value, in the call or in a row ({said}); see `rota doctor`")
    if code.startswith("28"):
        return StoreUnavailable(f"{url} does not let this user in ({said}); check its name and password", False)
    if code == "3D000":
        return StoreUnavailable(f"{url}: {said}; create it, or correct the URL (ROTA_URL)", False)
    if code == "42501":
        return StoreUnavailable(f"{url}: {said}; see the grants in docs/postgresql.md", False)
    if code.startswith("53") and code not in _PASSING:
        return StoreUnavailable(f"{url} has no room left ({said}); nothing was lost", False)
    if code.startswith(_GONE) or code == "42883":
        return StoreCorrupt(f"{url} holds no sound rota schema ({said}); restore it, or give rota a schema of its own")
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{url} has not answered for {CALL_PATIENCE:.0f} s; is the server frozen?")
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return StoreUnavailable(f"{url} refused the connection; is the server running? (ROTA_URL)")
    return StoreUnavailable(f"{url} is away ({type(error).__name__}: {said})")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def placeholders(args: Sequence[Any]) -> str:
    return ", ".join(f"${place}" for place in range(1, len(args) + 1))
