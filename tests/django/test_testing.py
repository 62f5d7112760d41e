"""What tests of Django projects have: `run_tasks` on the thread of the test and inside its transaction."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import TestCase, TransactionTestCase
from django.test.utils import setup_test_environment, teardown_test_environment

from rota import Every, Retry
from rota.django import app
from rota.django.testing import (
    RotaTestMixin,
    arun_tasks,
    assert_enqueued,
    assert_not_enqueued,
    run_tasks,
    travel,
)
from rota.domain.run import State
from tests.django.shop.tasks import add

threads: list[str] = []
calls: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def _environment() -> Iterator[None]:
    call_command("migrate", verbosity=0)
    setup_test_environment()
    try:
        define()
        yield
    finally:
        teardown_test_environment()


def define() -> None:
    if "testing.group" in app.tasks:
        return

    @app.task(name="testing.group")
    def make_group(name: str) -> str:
        threads.append(threading.current_thread().name)
        Group.objects.create(name=name)
        transaction.on_commit(lambda: calls.append(f"committed {name}"))
        return name

    @app.task(name="testing.agroup")
    async def make_group_async(name: str) -> str:
        await Group.objects.acreate(name=name)
        return name

    @app.task(name="testing.chain")
    def chain(names: list[str]) -> None:
        if names:
            app.tasks["testing.group"].submit_sync(names[0])
            app.tasks["testing.chain"].submit_sync(names[1:])

    @app.task(name="testing.fails", retry=Retry(2, "fixed", delay=60))
    def fails(name: str) -> None:
        calls.append(f"tried {name}")
        Group.objects.create(name=name)
        raise LookupError(name)

    @app.task(name="testing.twice")
    def twice() -> None:
        Group.objects.create(name="same")
        Group.objects.create(name="same")

    @app.task(name="testing.hourly", schedule=Every(hours=1))
    def hourly() -> None:
        calls.append("hour")


class InATransaction(RotaTestMixin, TestCase):
    def setUp(self) -> None:
        super().setUp()
        calls.clear()
        threads.clear()

    def test_a_task_runs_on_the_thread_of_the_test_inside_its_transaction(self) -> None:
        app.tasks["testing.group"].submit_sync("one")
        assert_enqueued("testing.group", name="one")
        assert not Group.objects.exists()
        [run] = run_tasks()
        assert run.state is State.SUCCEEDED
        assert [group.name for group in Group.objects.all()] == ["one"]
        assert connection.in_atomic_block
        assert threads == [threading.current_thread().name]
        assert calls == ["committed one"]
        assert run_tasks() == []

    def test_async_tasks_and_tasks_of_tasks_run_too(self) -> None:
        app.tasks["testing.agroup"].submit_sync("async")
        app.tasks["testing.chain"].submit_sync(["a", "b"])
        runs = run_tasks()
        assert sorted(group.name for group in Group.objects.all()) == ["a", "async", "b"]
        assert len(runs) == 6

    def test_a_task_of_django_is_enqueued_and_run_as_any_other(self) -> None:
        result = add.enqueue(1, b=5)
        assert_enqueued(add, 1, 5)
        assert_not_enqueued(add, 2, 5)
        run_tasks()
        assert add.get_result(result.id).return_value == 6

    def test_a_store_is_empty_in_each_test(self) -> None:
        assert_not_enqueued("testing.group")
        assert not Group.objects.exists()
        with pytest.raises(AssertionError, match="was not submitted; the store holds no run at all"):
            assert_enqueued("testing.group", name="one")

    def test_a_failure_is_raised_when_no_attempt_follows(self) -> None:
        app.tasks["testing.fails"].submit_sync("x1")
        assert [run.state for run in run_tasks()] == [State.QUEUED]
        assert Group.objects.filter(name="x1").exists(), "what a task writes before its error stays, as in autocommit"
        Group.objects.all().delete()
        travel(minutes=2)
        run_tasks()
        Group.objects.all().delete()
        with pytest.raises(LookupError, match="x1"):
            run_tasks(until=timedelta(minutes=30))
        assert calls.count("tried x1") == 3

    def test_an_error_of_the_database_spoils_only_its_task(self) -> None:
        Group.objects.create(name="before")
        app.tasks["testing.twice"].submit_sync()
        with pytest.raises(IntegrityError):
            run_tasks()
        assert run_tasks(raise_failures=False) == []
        assert Group.objects.filter(name="before").exists()

    def test_until_moves_the_clock_from_tick_to_tick(self) -> None:
        run_tasks()
        assert calls == []
        runs = run_tasks(until=timedelta(hours=3, minutes=1))
        assert calls == ["hour"] * 3
        assert sum(run.task == "testing.hourly" for run in runs) == 3


class InAutocommit(RotaTestMixin, TransactionTestCase):
    def test_a_task_commits_and_its_callbacks_run(self) -> None:
        calls.clear()
        app.tasks["testing.group"].submit_sync("kept")
        run_tasks()
        assert calls == ["committed kept"]
        assert not connection.in_atomic_block


class InACoroutine(RotaTestMixin, TestCase):
    async def test_an_async_test_awaits_its_tasks(self) -> None:
        await app.tasks["testing.group"].submit("awaited")
        [run] = await arun_tasks()
        assert run.state is State.SUCCEEDED
        assert await Group.objects.filter(name="awaited").aexists()


def test_the_fixture_has_a_store_of_its_own(django_rota: ModuleType) -> None:
    app.tasks["testing.chain"].submit_sync([])
    assert [run.task for run in django_rota.run_tasks()] == ["testing.chain"]
    with pytest.raises(AssertionError):
        django_rota.assert_enqueued("testing.group")
