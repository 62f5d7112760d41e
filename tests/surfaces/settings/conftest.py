"""A project of its own for every test of the settings."""

import os
from pathlib import Path

import pytest

from tests.surfaces.settings.asked import Write


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of nothing but an empty pyproject.toml, and no variable of ours."""
    for name in [name for name in os.environ if name.startswith("ROTA_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rota_toml(folder: Path) -> Write:
    return lambda text: _write(folder / "rota.toml", text)


@pytest.fixture
def pyproject(folder: Path) -> Write:
    return lambda text: _write(folder / "pyproject.toml", text)


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
