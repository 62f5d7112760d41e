"""The fixture `django_rota` beside pytest-django: in the transaction of `db`, without one, and in several processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.django.served.site import ROOT, more_servers

TESTS = """
import pytest
from django.db import connection

from tests.django.shop.models import Order
from tests.django.shop.tasks import add, see


@pytest.mark.parametrize("number", range(4))
def test_a_task_writes_into_the_transaction_of_the_test(db, django_rota, number):
    assert connection.in_atomic_block
    assert not Order.objects.exists(), "the test before left nothing"
    see.enqueue("mine")
    django_rota.assert_enqueued(see, "mine")
    [run] = django_rota.run_tasks()
    assert (run.state, Order.objects.get(name="mine").seen) == ("succeeded", 1)


@pytest.mark.django_db(transaction=True)
def test_a_task_commits(django_rota):
    assert not connection.in_atomic_block
    see.enqueue("kept")
    django_rota.run_tasks()
    assert Order.objects.get().seen == 1


def test_no_database_is_needed(django_rota):
    result = add.enqueue(1)
    django_rota.run_tasks()
    result.refresh()
    assert result.return_value == 3
"""


@pytest.mark.soak
@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_project_with_pytest_django(processes: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nDJANGO_SETTINGS_MODULE = tests.django.settings\n")
    (tmp_path / "test_shop.py").write_text(TESTS)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "DJANGO_"))},
        "PYTHONPATH": f"{ROOT}:{more_servers()}",
    }
    words = ["-m", "pytest", "-q", "-n", processes, "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert "6 passed" in done.stdout, done.stdout + done.stderr
