"""The project of these tests is set up once in each process, over an SQLite file of its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import django
import pytest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

from rota import Rota  # noqa: E402
from tests.faults.conftest import in_place  # noqa: E402
from tests.server_fixtures import Servers  # noqa: E402


@pytest.fixture(scope="session")
def database() -> None:
    """The tables of the project, in its SQLite file."""
    call_command("migrate", run_syncdb=True, verbosity=0)


@pytest.fixture
def app(database: None) -> Iterator[Rota]:
    """The app of the project, over an empty store in memory."""
    from rota.django.project import app

    with app().bound_to("memory://") as bound:
        yield bound


@pytest.fixture(params=["memory", "sqlite", "valkey-9", "postgres-18"])
def store(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path, namespace: str, database: None
) -> Iterator[Rota]:
    """The app of the project, over each store in turn."""
    from rota.django.project import app

    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/rota.db"}
    kind = str(request.param)
    with app().bound_to(urls.get(kind) or in_place(servers.get(kind).url, namespace)) as bound:
        yield bound
