"""Fixtures of the surfaces."""

from pathlib import Path

import pytest

from tests.surfaces.called import Called
from tests.surfaces.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A small project of a user: a project file, a tasks module, an SQLite store."""
    return Project(tmp_path)


@pytest.fixture
def rota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    for name in ("ROTA_URL", "ROTA_APP", "ROTA_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "rota.toml").touch()
    monkeypatch.chdir(tmp_path)
    return Called(f"sqlite:///{tmp_path}/rota.db", capsys)
