"""Settings: what is not said in code comes from the environment, then from the project's place."""

import os
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rota.errors import InvalidOptions

PROJECT_FILES = ("rota.toml", "pyproject.toml")


def default_url() -> str:
    """ROTA_URL, else an SQLite file in `.rota/` beside the project's pyproject.toml or rota.toml."""
    return os.environ.get("ROTA_URL") or f"sqlite:///{quote(str(project_folder() / '.rota' / 'rota.db'))}"


def app_reference() -> str | None:
    """ROTA_APP, else the project's own: `app` in rota.toml or `[tool.rota] app` in pyproject.toml."""
    if given := os.environ.get("ROTA_APP"):
        return given
    for file in (project_folder() / name for name in PROJECT_FILES):
        if file.is_file() and (app := _table(file).get("app")) is not None:
            if not isinstance(app, str):
                raise InvalidOptions(f'{file}: app = {app!r}; write app = "module:attribute"')
            return app
    return None


def project_folder() -> Path:
    """The nearest folder from here upwards that holds a project file; else this one."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if any((folder / name).is_file() for name in PROJECT_FILES):
            return folder
    return here


def _table(file: Path) -> dict[str, Any]:
    """rota's part of a project file: all of rota.toml, `[tool.rota]` of pyproject.toml."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidOptions(f"{file} cannot be read: {error}") from None
    return content if file.name == "rota.toml" else content.get("tool", {}).get("rota", {})
