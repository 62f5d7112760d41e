"""The pytest plugin: `django_rota`, the module `rota.django.testing` over a store of its own.

pytest finds it by itself once rota is installed, so nothing of Django is imported before the fixture is used.
"""

from collections.abc import Iterator
from types import ModuleType

import pytest


@pytest.fixture
def django_rota() -> Iterator[ModuleType]:
    """An empty store for this test, and what tests do with it: `django_rota.run_tasks()`, `django_rota.travel(days=7)`.

    Beside pytest-django, its `db` gives the test a database; `run_tasks` works inside its transaction.
    """
    from rota.django import testing

    with testing.fresh_store():
        yield testing
