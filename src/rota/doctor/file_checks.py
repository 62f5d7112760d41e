"""Checks of an SQLite file that need no open store: rights, free space, schema and settings."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from rota.doctor.checks import Check, Verdict, good
from rota.domain.text import size
from rota.errors import RotaError
from rota.stores.sqlite.connection import connect, identity, migrations, plain_errors

OLDEST_SQLITE = (3, 38, 0)
LITTLE_ROOM, NO_ROOM = 1 << 30, 50 << 20
LONG_LOG = 256 << 20
SYNCHRONOUS = {0: "off", 1: "normal", 2: "full", 3: "extra"}


def file_checks(path: str) -> Iterator[Check]:
    """Check the file itself, then its schema, then its settings."""
    file = Path(path).absolute()
    yield _sqlite()
    yield _folder(file)
    yield _room(file)
    if not file.exists():
        yield Check("file", Verdict.WARN, f"{file} is not there yet", "the first submit makes it", blocks=True)
        return
    yield _file(file)
    yield _file_size(file)
    schema = _schema(file)
    yield schema
    if not schema.blocks:
        yield from _settings(file)


def _sqlite() -> Check:
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info >= OLDEST_SQLITE:
        return good("sqlite", found)
    return Check("sqlite", Verdict.FAIL, found, "rota needs SQLite 3.38 or newer: use a newer Python build")


def _folder(file: Path) -> Check:
    """Check the nearest folder above `file` that exists: missing folders are created there."""
    folder = next(parent for parent in file.parents if parent.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        advice = f"let this user (uid {_uid()}) write there, or name another place (ROTA_URL)"
        return Check("folder", Verdict.FAIL, f"{folder} may not be written", advice, blocks=True)
    return good("folder", f"{folder} may be written")


def _room(file: Path) -> Check:
    folder = next(parent for parent in file.parents if parent.exists())
    free = shutil.disk_usage(folder).free
    if free < NO_ROOM:
        return Check("disk", Verdict.FAIL, f"{size(free)} free", "free some space: submits fail without it")
    if free < LITTLE_ROOM:
        return Check("disk", Verdict.WARN, f"{size(free)} free", "free some space")
    return good("disk", f"{size(free)} free")


def _file(file: Path) -> Check:
    mode = stat.S_IMODE(file.stat().st_mode)
    detail = f"{file} (mode {mode:03o})"
    if not os.access(file, os.R_OK | os.W_OK):
        advice = f"let this user (uid {_uid()}) read and write it"
        return Check("file", Verdict.FAIL, f"{detail} may not be written", advice, blocks=True)
    if mode & stat.S_IWOTH:
        return Check("file", Verdict.WARN, f"{detail} may be written by anyone", f"chmod o-w {file}")
    if mode & stat.S_IROTH and file.parent.stat().st_mode & stat.S_IXOTH:
        advice = f"arguments and results are in it: chmod o-r {file}*"
        return Check("file", Verdict.WARN, f"{detail} may be read by every user of this machine", advice)
    return good("file", detail)


def _file_size(file: Path) -> Check:
    log = Path(f"{file}-wal")
    logged = log.stat().st_size if log.exists() else 0
    detail = f"{size(file.stat().st_size)}, and {size(logged)} in its write-ahead log"
    if logged > LONG_LOG:
        return Check("size", Verdict.WARN, detail, "a reader that never ends keeps the log long: look for one")
    return good("size", detail)


def _schema(file: Path) -> Check:
    """Read the schema without opening the store, because opening migrates it."""
    try:
        with (
            plain_errors(str(file)),
            closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as connection,
        ):
            found = identity(connection)
    except RotaError as error:
        return Check("schema", Verdict.FAIL, str(error), "restore a copy, or move the file away", blocks=True)
    known, version = len(migrations()), found.version
    if found.foreign:
        detail = f"{file} is a database of some other program"
        return Check("schema", Verdict.FAIL, detail, "give rota a file of its own (ROTA_URL)", blocks=True)
    if version > known:
        advice = "upgrade rota, or remove the file if an unreleased version of rota made it"
        return Check("schema", Verdict.FAIL, f"{version}, newer than {known}", advice, blocks=True)
    if version < known:
        return Check("schema", Verdict.WARN, f"{version}, older than {known}", "run rota migrate", blocks=True)
    return good("schema", str(version))


def _settings(file: Path) -> Iterator[Check]:
    try:
        with plain_errors(str(file)), closing(connect(str(file))) as connection:
            journal = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
            level = int(connection.execute("PRAGMA synchronous").fetchone()[0])
    except RotaError as error:
        yield Check("settings", Verdict.FAIL, str(error), "see above", blocks=True)
        return
    if journal == "wal":
        yield good("journal", "wal")
    else:
        yield Check("journal", Verdict.WARN, journal, "put the file on a local disk: WAL needs shared memory")
    spelled = SYNCHRONOUS.get(level, str(level))
    if level >= 2:
        yield good("synchronous", spelled)
    else:
        yield Check("synchronous", Verdict.WARN, spelled, "a power cut may lose the latest submits")


def _uid() -> int | str:
    return os.getuid() if hasattr(os, "getuid") else "?"
