"""A folder whose path is short enough for a Unix socket; that of `tmp_path` may not be."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from storekit.servers.places import private_folder


@pytest.fixture
def short_folder() -> Iterator[Path]:
    folder = private_folder("test")
    yield folder
    shutil.rmtree(folder)
