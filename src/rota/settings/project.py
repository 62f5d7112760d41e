"""The project's place, and what its files say.

A project file names the code to import. So one that another user has put into a parent folder is not obeyed.
"""

import logging
import os
import stat
import tomllib
from pathlib import Path
from typing import Any, cast

from rota.errors import InvalidOptions

log = logging.getLogger("rota")

PROJECT_FILES = ("rota.toml", "pyproject.toml")
DATABASE = Path(".rota", "rota.db")
"""The default store, in the project's folder."""
TRUST = "ROTA_TRUST"
"""The variable that names folders, as PATH does, whose project files are obeyed whoever owns them."""

_told: set[Path] = set()


def project_folder() -> Path:
    """The nearest folder from here upwards that holds a project file; else one that holds a store; else this one."""
    here = Path.cwd()
    folders = (here, *here.parents)
    with_file = (folder for folder in folders if files_to_obey(folder))
    with_store = (folder for folder in folders if _is_store_of_ours(folder / DATABASE))
    return next(with_file, None) or next(with_store, None) or here


def files_to_obey(folder: Path) -> list[Path]:
    """The folder's project files. Of a folder above this one, only those that nobody else could have written."""
    files = [folder / name for name in PROJECT_FILES if (folder / name).is_file()]
    return files if folder == Path.cwd() or _is_trusted(folder) else [file for file in files if _is_safe(file)]


def _is_safe(file: Path) -> bool:
    reason = _suspicion(file)
    if reason is not None and file not in _told:
        _told.add(file)
        log.warning("%s is not obeyed: %s. If you trust it, set %s=%s", file, reason, TRUST, file.parent)
    return reason is None


def _suspicion(file: Path) -> str | None:
    """Why another user may speak through this file; None if none can."""
    found = file.stat()
    if found.st_uid not in trusted_users():
        return f"it belongs to another user (uid {found.st_uid})"
    return "every user may write to it" if found.st_mode & stat.S_IWOTH else None


def _is_store_of_ours(database: Path) -> bool:
    try:
        return database.is_file() and database.stat().st_uid in trusted_users()
    except OSError:  # a folder that this user may not look into
        return False


def trusted_users() -> set[int]:
    """This user and root; for root, also who became root by sudo. Where there are no user ids, all files have 0."""
    if not hasattr(os, "geteuid"):
        return {0}
    sudo = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid()} | ({int(sudo)} if sudo.isdecimal() else set())


def _is_trusted(folder: Path) -> bool:
    named = os.environ.get(TRUST, "").split(os.pathsep)
    return any(name and Path(name).resolve() == folder.resolve() for name in named)


def table_of(file: Path) -> dict[str, Any]:
    """rota's part of a project file: all of rota.toml, `[tool.rota]` of pyproject.toml; nothing if there is none."""
    if not file.is_file():
        return {}
    found: object = _parsed(file)
    for key in () if file.name == "rota.toml" else ("tool", "rota"):
        found = cast("dict[str, object]", found).get(key, {})
        if not isinstance(found, dict):
            raise InvalidOptions(f"{file}: {key} = {found!r:.80}: expected a table, [tool.rota]")
    return cast("dict[str, Any]", found)


def _parsed(file: Path) -> dict[str, Any]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidOptions(f"{file} cannot be read: {error.strerror}") from None
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidOptions(f"{file} cannot be read: it is not UTF-8 (at line {line})") from None
    except tomllib.TOMLDecodeError as error:
        last = content.rstrip().count(b"\n") + 1
        said = str(error).replace("at end of document", f"at line {last}, the end of the document")
        raise InvalidOptions(f"{file} cannot be read: {said}") from None
