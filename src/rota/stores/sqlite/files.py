"""Creation of the files, with modes that let no other user read arguments and results.

A new database is 0600; SQLite gives `-wal` and `-shm` the mode of their database. The default folder `.rota` is 0700.
A folder that the user named keeps its mode.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from rota.errors import StoreUnavailable

DEFAULT = (".rota", "rota.db")
"""The folder and the file of a store without a URL."""
EARLIER = {0o755: 0o700, 0o644: 0o600}
"""Modes that earlier versions gave under the usual umask, and their replacements. A user chose any other mode."""


def no_store(path: str) -> str:
    return f"no store at {path} yet: nothing was submitted there (is that the right place? --url, ROTA_URL)"


def make(path: Path) -> None:
    """Create the folder and an empty file if they are missing. SQLite would create a file that everybody may read."""
    try:
        if path.parent.name == DEFAULT[0]:
            path.parent.parent.mkdir(parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"the folder of {path} cannot be made ({error})", passing=False) from error
    if (path.parent.name, path.name) == DEFAULT:
        _tighten(path)
    with suppress(OSError):  # the file exists, or cannot be created: then SQLite raises the error
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _tighten(path: Path) -> None:
    for file in (path.parent, path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        with suppress(OSError):  # the file is missing, or belongs to another user
            found = file.lstat()
            tighter = EARLIER.get(stat.S_IMODE(found.st_mode))
            if tighter is not None and not stat.S_ISLNK(found.st_mode):
                file.chmod(tighter)
