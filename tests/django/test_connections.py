"""Connections to the project's database: none leaks, a broken one heals, and async tasks do not wait for each other."""

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from msgspec.structs import replace

from rota import Rota
from rota.app.core import core_of
from rota.django import databases
from rota.django.models import OutboxRun
from rota.django.project import app as project_app
from rota.django.tasks_api import AnyResult, task_backends
from storekit.servers import PostgresServer
from tests.django.aliases import alias, counted, entry_of, terminated
from tests.django.shop import tasks as shop
from tests.django.shop.models import Order

SEATS = 10


@pytest.fixture
def meeting(monkeypatch: pytest.MonkeyPatch) -> threading.Barrier:
    """Where all seats meet."""
    barrier = threading.Barrier(SEATS)
    monkeypatch.setattr(shop, "meeting", barrier)
    return barrier


@pytest.fixture(params=[0, None], ids=["closed after each task", "kept"])
def max_age(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def store() -> str:
    """The URL of the store. A test may say another one, with the name of a schema in it."""
    return "memory://"


@pytest.fixture
def site(
    postgres: PostgresServer, namespace: str, max_age: int | None, store: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rota]:
    """The app of the project, whose database is a PostgreSQL one; its connections are named after the test."""
    options = {"options": f"-c search_path={namespace}", "application_name": namespace}
    with alias("default", entry_of(postgres.url, CONN_MAX_AGE=max_age, OPTIONS=options)):
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE SCHEMA {namespace}")
        with connection.schema_editor() as editor:
            editor.create_model(Order)
            editor.create_model(OutboxRun)
        Order.objects.create(name="first")
        connection.close()
        core = core_of(project_app())
        monkeypatch.setattr(core, "tuning", replace(core.tuning, concurrency=SEATS))
        with core.bound_to(databases.connect(store.format(namespace))):
            yield project_app()


def ended(app: Rota, results: list[AnyResult]) -> list[Any]:
    """Wait until all have ended; return what they returned."""

    async def wait() -> None:
        await asyncio.gather(*(app.client().ended(result.id, 60) for result in results))

    app.portal.call(wait)
    return [task_backends["default"].get_result(result.id).return_value for result in results]


def none_left(url: str, application: str) -> None:
    """Wait until the server has no connection of this name: a thread that has ended may still be closing its own."""
    for _ in range(500):
        if counted(url, application) == 0:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{counted(url, application)} connections are left")


def after(app: Rota, url: str, namespace: str, tasks: int) -> None:
    """Run so many tasks that use the database, plain and async; no more connections than threads are ever there."""
    own_tasks = own(app)
    with app.running(grace=5):
        results = [each.enqueue("first") for _ in range(tasks // 4) for each in (shop.see, shop.see_async)]
        handles = [each.submit_sync() for _ in range(tasks // 4) for each in own_tasks]
        ended(app, results)
        for handle in handles:
            assert handle.result_sync(60) == 1
        assert counted(url, namespace) <= SEATS + 1, "one for each seat, and one for the outbox"
    connection.close()
    none_left(url, namespace)


def own(app: Rota) -> list[Any]:
    """Tasks of rota that use the database, plain and async."""
    if "own.see" not in app.tasks:

        @app.task(name="own.see")
        def see() -> int:
            return Order.objects.count()

        @app.task(name="own.see_async")
        async def see_async() -> int:
            return await Order.objects.acount()

    return [app.tasks["own.see"], app.tasks["own.see_async"]]


def test_no_connection_leaks(site: Rota, postgres: PostgresServer, namespace: str) -> None:
    after(site, postgres.url, namespace, 100)


@pytest.mark.soak
def test_no_connection_leaks_in_two_thousand_tasks(site: Rota, postgres: PostgresServer, namespace: str) -> None:
    after(site, postgres.url, namespace, 2000)


@pytest.mark.parametrize("store", ["memory://", "django://default?schema={}_store"])
@pytest.mark.parametrize("max_age", [None], indirect=True)
def test_after_the_server_has_ended_all_connections_the_next_task_of_each_seat_succeeds(
    site: Rota, postgres: PostgresServer, namespace: str, meeting: threading.Barrier
) -> None:
    with site.running(grace=5):
        assert ended(site, [shop.see_together.enqueue("first") for _ in range(SEATS)]) == [True] * SEATS
        assert terminated(postgres.url, namespace) >= SEATS
        meeting.reset()
        assert ended(site, [shop.see_together.enqueue("first") for _ in range(SEATS)]) == [True] * SEATS
        meeting.reset()
        assert ended(site, [shop.see_together_async.enqueue("first") for _ in range(SEATS)]) == [1] * SEATS


@pytest.mark.parametrize("max_age", [0], indirect=True)
def test_async_tasks_use_the_database_at_the_same_time(site: Rota, meeting: threading.Barrier) -> None:
    with site.running(grace=5):
        assert ended(site, [shop.see_together_async.enqueue("first") for _ in range(SEATS)]) == [1] * SEATS
    assert not meeting.broken


def test_a_child_process_has_its_own_connections(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DIR", str(settings.BASE_DIR))  # the same database
    Order.objects.all().delete()
    Order.objects.create(name="ours")
    mine = {os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd") if is_open(each)}
    with app.running(grace=5):
        (found,) = ended(app, [shop.in_a_child.enqueue("ours")])
    Order.objects.all().delete()
    assert found["pid"] != os.getpid()
    assert found["orders"] == 1
    assert not {each for each in mine if "db.sqlite3" in each or "socket:" in each} & set(found["sockets"])


def is_open(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")
