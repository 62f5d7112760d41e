"""Processes that enqueue are killed: nothing that they committed is lost, nothing that they rolled back is run, and
nothing runs twice."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from storekit.servers import PostgresServer
from tests.django.aliases import asked, entry_of
from tests.faults.conftest import in_place
from tests.server_fixtures import Servers

ROOT = Path(__file__).parents[2]
WORKS = """
import django, sys, threading
django.setup()
import rota.django
from rota.django.models import OutboxRun

app = rota.django.app
with app.running():
    sys.stdin.read()
    while OutboxRun.objects.exists() or any(app.portal.call(app.depths).values()):
        threading.Event().wait(0.05)
"""


class Place(NamedTuple):
    """Where a project keeps its own data, and where its runs are."""

    folder: Path
    databases: dict[str, Any] | None = None
    rota: dict[str, Any] | None = None


@contextmanager
def started(place: Place, *words: str) -> Generator[subprocess.Popen[str]]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.django.settings",
        "SHOP_DIR": str(place.folder),
        "SHOP_DATABASES": json.dumps(place.databases),
        "SHOP_ROTA": json.dumps(place.rota or {}),
        "PYTHONPATH": str(ROOT),
    }
    pipe = subprocess.PIPE
    with (
        (place.folder / "errors").open("a") as errors,
        subprocess.Popen(
            [sys.executable, *words], cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=errors, text=True
        ) as process,
    ):
        yield process


def killed(place: Place, deaths: int, each: int) -> None:
    """Let processes die beside a worker, which ends when nothing is left to do."""
    lines, errors = place.folder / "lines", place.folder / "errors"
    known, maybe = list[str](), set[str]()
    with started(place, "-m", "tests.django.dying", str(lines), str(deaths), str(each)) as dying:
        assert dying.stdout is not None
        known.append(dying.stdout.readline().strip())  # a run of its own, once the tables are there
        with started(place, "-c", WORKS) as worker:
            for line in dying.stdout:
                number = line.strip()
                if number.startswith("maybe "):
                    maybe.add(number.removeprefix("maybe "))
                else:
                    known.append(number)
            worker.communicate()
        assert worker.returncode == 0, errors.read_text()
    assert dying.returncode == 0, errors.read_text()
    assert len(known) >= deaths * each * 3 // 4
    ran = lines.read_text().splitlines()
    assert len(set(ran)) == len(ran), "some ran twice"
    assert {*known} <= {*ran}, "some were lost"
    assert {*ran} <= {*known, *maybe}, "some were rolled back, or were never committed"


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
def test_ten_thousand_processes_killed_after_their_commit(place: Place) -> None:
    killed(place, 10_000, 1)
