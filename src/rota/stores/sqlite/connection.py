"""Connections: settings, migrations, the write lock, and errors of SQLite as errors of rota."""

import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from rota.errors import SchemaTooNew, StoreCorrupt, StoreError, StoreUnavailable

APPLICATION_ID = 0x726F7461  # "rota"
LONGEST_LOG = 16 * 1024 * 1024
"""The write-ahead log grows while a reader keeps its transaction open. Afterwards SQLite cuts it to so many bytes."""
LOCK_PATIENCE = 20.0
"""The most seconds to wait for the transaction of another process."""


def connect(path: str) -> sqlite3.Connection:
    """Connect to an existing file, and bring its schema up to date."""
    with plain_errors(path):
        existing = f"{Path(path).absolute().as_uri()}?mode=rw"  # files.make has created the file, if that is allowed
        connection = sqlite3.connect(existing, timeout=5.0, isolation_level=None, check_same_thread=False, uri=True)
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                _when_unlocked(connection, "PRAGMA journal_mode = WAL")  # this statement ignores the busy timeout
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA temp_store = MEMORY")
            connection.execute(f"PRAGMA journal_size_limit = {LONGEST_LOG:d}")
            migrate(connection, path)
            connection.execute("PRAGMA busy_timeout = 0")  # see begin
        except BaseException:
            connection.close()
            raise
    return connection


def migrations() -> list[str]:
    """Return the scripts in their order. The n-th brings the schema to version n."""
    folder = resources.files("rota.stores.sqlite") / "migrations"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [f.read_text() for f in files]


def additions() -> dict[str, str]:
    """Return the scripts of tables that earlier versions neither know nor miss, by the last table that each makes. They
    leave the version of the schema as it is, so that earlier versions still open the file."""
    folder = resources.files("rota.stores.sqlite") / "additions"
    return {f.name.removesuffix(".sql"): f.read_text() for f in folder.iterdir() if f.name.endswith(".sql")}


def missing(connection: sqlite3.Connection) -> list[str]:
    """Return the additions that the file does not have, in their order."""
    found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return sorted(additions().keys() - found)


def migrate(connection: sqlite3.Connection, path: str) -> tuple[int, int]:
    """Bring the schema up to date in one transaction. Return the version before and after."""
    scripts = migrations()
    if _version(connection, path) == len(scripts) and not missing(connection):
        return len(scripts), len(scripts)
    begin(connection, path)
    with committed(connection):
        found = _version(connection, path)
        for script in [*scripts[found:], *(additions()[name] for name in missing(connection))]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    return found, len(scripts)


def planned(path: str) -> tuple[int, int]:
    """Return the version of the schema, 0 for a file that does not exist, and the one that `migrate` would bring it to.
    Nothing is changed."""
    if not Path(path).exists():
        return 0, len(migrations())
    readable = f"{Path(path).absolute().as_uri()}?mode=ro"
    with plain_errors(path), closing(sqlite3.connect(readable, timeout=5.0, uri=True)) as connection:
        return _version(connection, path), len(migrations())


def begin(connection: sqlite3.Connection, path: str) -> None:
    """Take the write lock. The waits of SQLite itself grow to 100 ms; these stay short, so that turns are fair."""
    try:
        _when_unlocked(connection, "BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if not _busy(error):
            raise
        raise StoreUnavailable(
            f"{path} has been locked by another process for {LOCK_PATIENCE:.0f} s; is one frozen?", passing=False
        ) from error


def begun(connection: sqlite3.Connection) -> bool:
    """Take the write lock without waiting. Return False if another process has it, or the file cannot be written."""
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error:
        return False
    return True


@contextmanager
def committed(connection: sqlite3.Connection) -> Generator[None]:
    """Commit the transaction that `begin` has opened; roll it back after an error."""
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # after some errors, such as a full disk, SQLite itself has rolled back
            connection.execute("ROLLBACK")
        raise


@contextmanager
def plain_errors(path: str) -> Generator[None]:
    """Raise errors of sqlite3 as errors of rota, which say what happened, to which file, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path) from error


def explain(error: sqlite3.Error, path: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreCorrupt(f"{path} is not a sound SQLite database ({error}); restore it or move it away")
        case sqlite3.SQLITE_FULL:
            what = f"no room left to write {path} ({error}); free some space, nothing was lost"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            what = f"{path} may not be written by this user ({error}); check its folder's permissions"
        case sqlite3.SQLITE_CANTOPEN:
            what = f"{path} cannot be opened ({error}); does its folder exist, and may you write there?"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            what = f"{path} is held by another process ({error}); is one frozen?"
        case sqlite3.SQLITE_IOERR:
            what = f"{path} cannot be read or written ({error}); is the disk full or failing?"
        case _:
            what = f"{path}: {error}"
    return StoreUnavailable(what, passing=False)


def _when_unlocked(connection: sqlite3.Connection, statement: str) -> None:
    """Execute `statement`; while another process has the lock, wait and try again, for LOCK_PATIENCE at most."""
    deadline = time.monotonic() + LOCK_PATIENCE
    pause = 0.0005
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not _busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(pause)
            pause = min(pause * 1.5, 0.004)
        else:
            return


def _busy(error: sqlite3.OperationalError) -> bool:
    return (error.sqlite_errorcode & 0xFF) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


FIRST_SCHEMA = "fans"
"""A table of the first schema that is kept. Unreleased versions of rota made files of schema 1 without it."""


class Identity(NamedTuple):
    """The schema version, the application id and the number of tables of a file, and whether it has FIRST_SCHEMA."""

    version: int
    owner: int
    tables: int
    whole: bool

    @property
    def foreign(self) -> bool:
        return bool(self.tables) and self.owner != APPLICATION_ID


def identity(connection: sqlite3.Connection) -> Identity:
    """Read the identity in one transaction. With two reads, another process could create the schema between them, and
    the file would have tables without an owner."""
    alone = not connection.in_transaction
    if alone:
        connection.execute("BEGIN")
    try:
        tables, whole = connection.execute(
            "SELECT count(*), count(*) FILTER (WHERE name = ?) FROM sqlite_master", (FIRST_SCHEMA,)
        ).fetchone()
        return Identity(
            tables=int(tables),
            whole=bool(whole),
            version=int(connection.execute("PRAGMA user_version").fetchone()[0]),
            owner=int(connection.execute("PRAGMA application_id").fetchone()[0]),
        )
    finally:
        if alone and connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection, path: str) -> int:
    found = identity(connection)
    version = found.version
    if found.foreign:
        raise StoreCorrupt(f"{path} is a database of some other program; give rota a file of its own (ROTA_URL)")
    if version and not found.whole:
        raise StoreCorrupt(
            f"{path} was made by an unreleased version of rota; move it away, or give rota another file (ROTA_URL)"
        )
    if version > len(migrations()):
        raise SchemaTooNew(
            f"{path} has schema {version}, written by a newer rota; "
            f"this one knows up to {len(migrations())}: upgrade rota, "
            "or remove the file if an unreleased version of rota made it"
        )
    return version


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
