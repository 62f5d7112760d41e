"""The folder of the project, and the settings in its files.

A project file names code to import. So rota ignores a file that another user can have written.
"""

import logging
import tomllib
from pathlib import Path
from typing import Any, cast

from rota.errors import InvalidOptions
from rota.settings.trust import TRUST, is_trusted, suspicion

log = logging.getLogger("rota")

PROJECT_FILES = ("rota.toml", "pyproject.toml")
DATABASE = Path(".rota", "rota.db")
"""The default store, in the project's folder."""
_warned: set[Path] = set()


def project_folder() -> Path:
    """Return the nearest folder, from the current one upwards, with a project file; else with a store; else the
    current."""
    here = Path.cwd()
    folders = (here, *here.parents)
    with_file = (folder for folder in folders if files_to_obey(folder))
    with_store = (folder for folder in folders if _holds_store_of_ours(folder))
    return next(with_file, None) or next(with_store, None) or here


def files_to_obey(folder: Path) -> list[Path]:
    """Return the project files in `folder` that no other user can have written."""
    files = [folder / name for name in PROJECT_FILES if _is_there(folder / name)]
    return files if is_trusted(folder) else [file for file in files if _is_safe(file)]


def _is_safe(file: Path) -> bool:
    reason = suspicion(file)
    if reason is not None and file not in _warned:
        _warned.add(file)
        way_out = f"if you trust the code in {file.parent}, set {TRUST}={file.parent}"
        log.warning("%s is not obeyed, because %s: %s", file, reason, way_out)
    return reason is None


def _holds_store_of_ours(folder: Path) -> bool:
    """Return whether `folder` holds a default store that no other user can have put there; rota imports code from
    it."""
    database = folder / DATABASE
    if not _is_there(database):
        return False
    return is_trusted(folder) or (suspicion(database) is None and suspicion(database.parent) is None)


def _is_there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # this user may not read the folder
        return False


def table_of(file: Path) -> dict[str, Any]:
    """Return the settings in a project file: all of rota.toml, `[tool.rota]` of pyproject.toml; empty if there is no
    file."""
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
        reason = str(error).replace("at end of document", f"at line {last}, the end of the document")
        raise InvalidOptions(f"{file} cannot be read: {reason}") from None
