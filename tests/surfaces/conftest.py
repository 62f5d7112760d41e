"""Fixtures of the surfaces."""

from pathlib import Path

import pytest

from rota.stores.sqlite import files
from rota.stores.sqlite.connection import connect
from tests.surfaces.called import Called
from tests.surfaces.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A small project of a user: a project file, a tasks module, an SQLite store."""
    project = Project(tmp_path)
    make_store(project.database)
    return project


@pytest.fixture
def rota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Called:
    for name in ("ROTA_URL", "ROTA_APP", "ROTA_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "rota.toml").touch()
    monkeypatch.chdir(tmp_path)
    make_store(tmp_path / "rota.db")
    return Called(f"sqlite:///{tmp_path}/rota.db", capsys)


def make_store(database: Path) -> None:
    """Commands that only read make none."""
    files.make(database)
    connect(str(database)).close()
