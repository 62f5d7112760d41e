"""The project's place, and what its files say."""

import tomllib
from pathlib import Path
from typing import Any, cast

from rota.errors import InvalidOptions

PROJECT_FILES = ("rota.toml", "pyproject.toml")


def project_folder() -> Path:
    """The nearest folder from here upwards that holds a project file; else this one."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if any((folder / name).is_file() for name in PROJECT_FILES):
            return folder
    return here


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
