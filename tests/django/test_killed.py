"""Processes that enqueue are killed: nothing that they committed is lost, nothing that they rolled back is run, and
nothing runs twice."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from storekit.servers import PostgresServer
from tests.django.aliases import asked, entry_of
from tests.faults.conftest import in_place
from tests.server_fixtures import Servers

ROOT = Path(__file__).parents[2]
WORKS = """
import django, sys, time
django.setup()
import rota.django
from rota.django.models import OutboxRun

app = rota.django.app
with app.running():
    while OutboxRun.objects.exists() or any(app.portal.call(app.depths).values()):
        time.sleep(0.05)
"""


class Place(NamedTuple):
    """Where a project keeps its own data, and where its runs are."""

    folder: Path
    databases: dict[str, Any] | None = None
    rota: dict[str, Any] | None = None


def played(place: Place, *words: str) -> str:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.django.settings",
        "SHOP_DIR": str(place.folder),
        "SHOP_DATABASES": json.dumps(place.databases),
        "SHOP_ROTA": json.dumps(place.rota or {}),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def killed(place: Place, deaths: int, each: int) -> None:
    lines = place.folder / "lines"
    committed = [*map(int, played(place, "-m", "tests.django.dying", str(lines), str(deaths), str(each)).split())]
    assert len(committed) >= deaths * each
    played(place, "-c", WORKS)
    ran = lines.read_text().splitlines()
    assert len(set(ran)) == len(ran), "some ran twice"
    assert {*map(str, committed)} <= {*ran}, "some were lost"
    # a process that was killed from outside may have committed one more, which nobody knows of
    unknown = {*ran} - {*map(str, committed)}
    assert unknown <= {str(number + 1) for number in committed}, "some were rolled back, or were never committed"


@pytest.fixture
def place(
    request: pytest.FixtureRequest, servers: Servers, postgres: PostgresServer, tmp_path: Path, namespace: str
) -> Place:
    """The database of the project, with the store."""
    database, _, store = str(request.param).partition(" with ")
    own = entry_of(postgres.url, OPTIONS={"options": f"-c search_path={namespace}_own"})
    databases = {"default": own} if database == "postgres" else None
    if databases:
        asked(postgres.url, f"CREATE SCHEMA {namespace}_own")
    url = None if store == "sqlite" else in_place(servers.get(store).url, namespace)
    return Place(tmp_path, databases, None if url is None else {"URL": url})


PLACES = [
    "sqlite with sqlite",
    "sqlite with valkey-9",
    "sqlite with postgres-18",
    "postgres with sqlite",
    "postgres with valkey-9",
    "postgres with postgres-18",
]


@pytest.mark.parametrize("place", [PLACES[0], PLACES[-1]], indirect=True)
def test_a_process_killed_after_its_commit_loses_nothing_and_runs_nothing_twice(place: Place) -> None:
    killed(place, 4, 3)


@pytest.mark.soak
@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_two_hundred_deaths_among_ten_thousand_commits(place: Place) -> None:
    killed(place, 200, 50)
