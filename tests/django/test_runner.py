"""`manage.py test --parallel` of a project on PostgreSQL: each process has its own store, and each test database is
dropped."""

import json
import os
import subprocess
import sys
from pathlib import Path

from storekit.servers import PostgresServer
from tests.django.aliases import asked, entry_of

ROOT = Path(__file__).parents[2]
TESTS = """
from django.test import TestCase, TransactionTestCase
from rota.django.testing import RotaTestMixin, arun_tasks, assert_enqueued, run_tasks
from tests.django.shop.models import Order
from tests.django.shop.tasks import see, see_async


class Plain(RotaTestMixin, TestCase):
    def test_a_task_writes_into_the_transaction_of_the_test(self):
        for number in range(5):
            see.enqueue(f"order {number}")
        assert len(run_tasks()) == 5
        assert Order.objects.count() == 5


class Async(RotaTestMixin, TestCase):
    async def test_an_async_task_too(self):
        await see_async.aenqueue("async")
        (run,) = await arun_tasks()
        assert run.state == "succeeded"
        assert await Order.objects.acount() == 1


class Autocommit(RotaTestMixin, TransactionTestCase):
    def test_a_task_commits(self):
        see.enqueue("kept")
        see_async.enqueue("kept")
        assert len(run_tasks()) == 2
        assert Order.objects.get().seen == 1
"""


IN_THE_DATABASE = """
from django.test import TestCase, TransactionTestCase
from rota.django.testing import RotaTestMixin, run_tasks
from tests.django.shop.models import Order
from tests.django.shop.tasks import add, see


class Bare(TestCase):
    def test_a_store_that_nobody_closes(self):
        assert add.enqueue(1).status == "READY"


class Mixed(RotaTestMixin, TransactionTestCase):
    def test_a_task_runs(self):
        see.enqueue("kept")
        assert "tests.django.shop.tasks.see" in [run.task for run in run_tasks()]
        assert Order.objects.get().seen == 1
"""


def test_tests_in_parallel_leave_no_database_behind(postgres: PostgresServer, namespace: str, tmp_path: Path) -> None:
    ran(postgres.url, f"{namespace}_tests", tmp_path, TESTS, "memory://", "--parallel", "2")


def test_a_store_in_the_database_of_the_tests_does_not_keep_it_from_being_dropped(
    postgres: PostgresServer, namespace: str, tmp_path: Path
) -> None:
    ran(postgres.url, f"{namespace}_tests", tmp_path, IN_THE_DATABASE, "django://default")


def ran(server: str, name: str, tmp_path: Path, tests: str, url: str, *words: str) -> None:
    """Run tests of a project, and see that they pass and leave no database."""
    databases = {"default": entry_of(server, TEST={"NAME": name})}
    (tmp_path / "their_tests.py").write_text(tests)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.django.settings",
        "SHOP_DIR": str(tmp_path),
        "SHOP_DATABASES": json.dumps(databases),
        "SHOP_ROTA": json.dumps({"TEST": {"URL": url}}),
        "PYTHONPATH": f"{ROOT}:{tmp_path}",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-m", "django", "test", "their_tests", *words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"Ran {tests.count('def test_')} tests" in done.stderr
    left = asked(server, "SELECT array_agg(datname::text) FROM pg_database WHERE datname LIKE $1", f"{name}%")
    assert left is None
