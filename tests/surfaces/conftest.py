"""Fixtures of the surfaces."""

from pathlib import Path

import pytest

from tests.surfaces.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A small project of a user: a project file, a tasks module, an SQLite store."""
    return Project(tmp_path)
