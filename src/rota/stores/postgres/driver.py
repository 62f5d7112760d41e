"""asyncpg as this store uses it, and its errors as errors of rota."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Any, Protocol, cast, overload

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

from rota.errors import StoreCorrupt, StoreError, StoreUnavailable, Unstorable
from rota.stores.postgres.address import Login

PATIENCE = 10.0
"""Seconds to wait for a connection."""
CALL_PATIENCE = 20.0
"""Seconds to wait for an answer. After that the server counts as away."""

NotifyCallback = Callable[[Any, int, str, str], None]


class Record(Protocol):
    """A row: its values by name or by position."""

    @overload
    def __getitem__(self, key: str | int) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, key: str | int | slice) -> Any: ...
    def get(self, key: str) -> Any: ...
    def keys(self) -> Iterable[str]: ...


class Connection(Protocol):
    """The methods of asyncpg's connection that rota uses."""

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> list[Record]: ...
    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str: ...
    async def add_listener(self, channel: str, callback: NotifyCallback) -> None: ...
    async def close(self, *, timeout: float | None = None) -> None: ...
    def add_termination_listener(self, callback: Callable[[Any], None]) -> None: ...
    def transaction(self, *, isolation: str | None = None) -> AbstractAsyncContextManager[Any]: ...
    def terminate(self) -> None: ...
    def is_closed(self) -> bool: ...
    def get_server_pid(self) -> int: ...
    def get_server_version(self) -> tuple[int, int, int, str, int]: ...


pg: Any = cast(Any, asyncpg)

ERRORS: tuple[type[Exception], ...] = (
    pg.PostgresError,
    pg.InterfaceError,
    pg.InternalClientError,
    OSError,
    TimeoutError,
)


class Fault(Enum):
    """What an error of the driver means for the verb, and for the connection."""

    ROLLED_BACK = auto()
    """The server rolled the verb back, because of another verb or because functions were replaced: send it again."""
    BAD_VALUE = auto()
    """Proven: PostgreSQL cannot store a value of the batch. The other batches that share the call can be stored."""
    BAD_ROW = auto()
    """A function could not read or write a value. The value may be in a row that the function read, so the error proves
    nothing about the batch. The other batches that share the call may be stored."""
    REFUSED = auto()
    """The server refused, and would refuse again: no login, no grant, no room, no schema."""
    AWAY = auto()
    """All other errors. It is unknown whether the verb was applied, and what the connection would answer next."""


_ROLLED_BACK = frozenset({"40001", "40P01", "55P03", "42883", "XX000"})
"""Serialization failure, deadlock, lock not available (NOWAIT), undefined function, internal error. Race: the last two
happen to a verb that runs while functions are replaced."""
_BAD_VALUE = ("22", "54000")
"""Data exceptions, and values that are too large for an index or a row. Such an error proves that an argument is bad
only if it is raised before the function begins: by asyncpg, which encodes the arguments, or by the server, which reads
them. All verbs are functions in PL/pgSQL. The context of an error that is raised inside one contains "PL/pgSQL", in
every language of the server's messages. No function reads the contents of endings."""
_GONE = ("42P01", "3F000", "42704", "XX001", "XX002")
_REFUSED = ("28", "3D000", "42501", "53", *_GONE)
_PASSING = ("53300",)
"""Too many connections: the only error of class 53 that is soon over."""


def fault_of(error: BaseException) -> Fault:
    """Judge `error` by its SQLSTATE. An error without SQLSTATE proves nothing about the value: asyncpg raises
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


async def connect(login: Login) -> Connection:
    """Connect with prepared statements. Behind a pooler use `connect_plainly`: the pooler mixes their names up."""
    return await _connect(login)


async def connect_plainly(login: Login) -> Connection:
    return await _connect(login, statement_cache_size=0)


async def _connect(login: Login, **options: int) -> Connection:
    given = {} if login.password is None else {"password": login.password}
    made = await pg.connect(login.dsn, timeout=PATIENCE, command_timeout=CALL_PATIENCE, **given, **options)
    return cast(Connection, made)


def explain(error: Exception, url: str) -> StoreError:
    """The error of rota for an error of the driver: what happened, on which server, and what to do."""
    code = _sqlstate(error)
    message = str(error) or type(error).__name__
    if fault_of(error) is Fault.BAD_VALUE:
        return Unstorable(f"{url} cannot store this value: {message}")
    if fault_of(error) is Fault.BAD_ROW:
        return StoreCorrupt(f"{url} met a bad value, in the call or in a row ({message}); see `rota doctor`")
    if code.startswith("28"):
        return StoreUnavailable(f"{url} does not let this user in ({message}); check its name and password", False)
    if code == "3D000":
        return StoreUnavailable(f"{url}: {message}; create it, or correct the URL (ROTA_URL)", False)
    if code == "42501":
        return StoreUnavailable(f"{url}: {message}; see the grants in docs/postgresql.md", False)
    if code.startswith("53") and code not in _PASSING:
        return StoreUnavailable(f"{url} has no room left ({message}); nothing was lost", False)
    if code.startswith(_GONE) or code == "42883":
        return StoreCorrupt(
            f"{url} holds no sound rota schema ({message}); restore it, or give rota a schema of its own"
        )
    if isinstance(error, TimeoutError):
        return StoreUnavailable(f"{url} has not answered for {CALL_PATIENCE:.0f} s; is the server frozen?")
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        return StoreUnavailable(f"{url} refused the connection; is the server running? (ROTA_URL)")
    return StoreUnavailable(f"{url} cannot be reached ({type(error).__name__}: {message})")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def placeholders(arguments: int) -> str:
    return ", ".join(f"${place}" for place in range(1, arguments + 1))
