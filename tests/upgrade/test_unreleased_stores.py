"""The first schema that is kept does not change any more, and a store from before it is refused in plain words."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rota.errors import StoreCorrupt
from rota.stores import connect
from tests.faults.conftest import store_url as store_url
from tests.upgrade.releases import BEFORE_THE_SERVICE, FIRST_FORMAT, REPOSITORY, file_of, source_of

FIRST_MIGRATIONS = [f"src/rota/stores/{store}/migrations/0001_tables.sql" for store in ("sqlite", "postgres")]


@pytest.mark.parametrize("path", FIRST_MIGRATIONS)
def test_the_first_migration_is_not_edited(path: str) -> None:
    words = "stores of this schema are in use: add the next migration instead, see CONTRIBUTING.md"
    assert (REPOSITORY / path).read_text() == file_of(FIRST_FORMAT, path), words


@pytest.mark.parametrize("store_url", ["sqlite", "postgres-18"], indirect=True)
async def test_a_store_from_before_the_first_schema_is_refused(store_url: str, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(source_of(BEFORE_THE_SERVICE, tmp_path / "old"))}
    command = [sys.executable, "-m", "rota", "--url", store_url, "migrate"]
    await asyncio.to_thread(subprocess.run, command, env=env, check=True)
    with pytest.raises(StoreCorrupt, match=r"was made by an unreleased version of rota; (move|drop) it"):
        async with connect(store_url).open():
            pass
