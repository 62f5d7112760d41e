"""Decide which project files no other user can have written.

A project file names code, and its folder goes to the front of `sys.path`. So its folder counts as much as the file:
whoever may write to the folder may add a module there. The sticky bit does not help against that.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

TRUST = "ROTA_TRUST"
"""The variable that lists folders, like PATH. Project files in these folders are trusted, whoever owns them."""
MOST_LINKS = 40
"""The most links in a row that Linux follows."""


def is_trusted(folder: Path) -> bool:
    """Return whether ROTA_TRUST names this folder."""
    named = os.environ.get(TRUST, "").split(os.pathsep)
    return any(name and Path(name).resolve() == folder.resolve() for name in named)


def trusted_users() -> set[int]:
    """Return the ids of this user and of root; if this is root, also the user who became root by sudo."""
    sudo = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid()} | ({int(sudo)} if sudo.isdecimal() else set())


def suspicion(file: Path) -> str | None:
    """Return why another user can have written `file`; None if no other user can, or if the system has no user ids.

    A link is judged, and then what it leads to: a link of another user may lead to a file of this user, and lies
    beside the other user's code.
    """
    if not hasattr(os, "geteuid"):
        return None
    trusted = trusted_users()
    try:
        doubts = (_doubt(part, trusted) for step in _steps(file) for part in (step, step.parent))
        return next((doubt for doubt in doubts if doubt is not None), None)
    except OSError as error:
        return f"{error.filename} cannot be looked at ({error.strerror})"


def imports_first(folder: Path) -> bool:
    """Return whether `folder` may be first on sys.path: only if no other user can have put modules there."""
    if not hasattr(os, "geteuid") or is_trusted(folder):
        return True
    try:
        return _doubt(folder, trusted_users()) is None
    except OSError:
        return False


def _steps(file: Path) -> Iterator[Path]:
    """Yield the file; if the file is a link, also its target, and so on."""
    for _ in range(MOST_LINKS):
        yield file
        if not file.is_symlink():
            return
        file = file.parent / file.readlink()


def _doubt(path: Path, trusted: set[int]) -> str | None:
    own = path.lstat()
    for found in (own, path.stat()) if stat.S_ISLNK(own.st_mode) else (own,):
        if found.st_uid not in trusted:
            return f"{path} belongs to another user (uid {found.st_uid})"
        if found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode):  # the mode of a link has no meaning
            return f"every user may write to {path}"
    return None
