"""The project of these tests is set up once in each process, over an SQLite file of its own."""

import os
from collections.abc import Iterator

import django
import pytest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

from rota import Rota  # noqa: E402


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
