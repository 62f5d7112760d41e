"""Transactional enqueue: a run exists once the transaction that enqueued it has committed."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connections, transaction
from django.db.models.functions import Now
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from rota import Rota, RunQuery
from rota.django import enqueue_on_commit, outbox
from rota.django.bridge import API, call_service
from rota.django.models import OutboxRun
from rota.django.project import app as project_app
from rota.django.tasks_api import TaskResultStatus, task_backends
from rota.domain.run import NewRun
from rota.web.rights import Principal, rights_of
from storekit.servers import PostgresServer
from tests.django.aliases import alias, entry_of
from tests.django.shop import tasks as shop

pytestmark = pytest.mark.usefixtures("database")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no hand-over late."""
    monkeypatch.setattr(outbox, "PATIENCE", 60.0)


@pytest.fixture
def pg(postgres: PostgresServer, namespace: str) -> Iterator[Rota]:
    """The app over a store in the PostgreSQL database that the alias `pg` of the project names."""
    joint = "&" if "?" in postgres.url else "?"
    with (
        alias("pg", entry_of(postgres.url)),
        override_settings(ROTA={"DATABASE": "pg"}),
        project_app().bound_to(f"{postgres.url}{joint}schema={namespace}") as bound,
    ):
        call_command("migrate", "rota", database="pg", verbosity=0)
        yield bound


def runs(app: Rota) -> list[str]:
    return sorted(run.id for run in app.portal.call(lambda: app.client().runs(RunQuery(limit=100))).runs)


class Stop(Exception):
    pass


@pytest.fixture(params=["default", "pg"])
def using(request: pytest.FixtureRequest, postgres: PostgresServer) -> Iterator[str]:
    """The alias of the database whose transactions count: on SQLite, and on PostgreSQL."""
    if request.param == "default":
        yield "default"
        return
    with alias("pg", entry_of(postgres.url)), override_settings(ROTA={"DATABASE": "pg"}):
        call_command("migrate", "rota", database="pg", verbosity=0)
        yield "pg"


def test_a_rollback_leaves_nothing_and_a_savepoint_only_its_part(using: str, store: Rota) -> None:
    with suppress(Stop), transaction.atomic(using=using):
        shop.add.enqueue(1)
        raise Stop
    assert runs(store) == []
    with transaction.atomic(using=using):
        with CaptureQueriesContext(connections[using]) as inside:
            kept = shop.add.enqueue(1)
        with suppress(Stop), transaction.atomic(using=using):
            shop.add.enqueue(2)
            raise Stop
        other = shop.add.enqueue(3)
        assert runs(store) == []
        assert kept.status == TaskResultStatus.READY
    assert len(inside.captured_queries) == 1
    assert runs(store) == sorted([kept.id, other.id])
    assert not OutboxRun.objects.using(using).filter(pk__in=[kept.id, other.id]).exists()
    with CaptureQueriesContext(connections[using]) as outside:
        shop.add.enqueue(4)
    assert outside.captured_queries == []


def test_a_result_is_there_before_its_run_is(app: Rota) -> None:
    with transaction.atomic():
        kept = shop.add.enqueue(1)
        assert runs(app) == []
        assert task_backends["default"].get_result(kept.id).args == [1]


def test_a_transaction_with_many_hands_them_over_in_steps_and_leaves_the_rest_to_the_workers(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    put = outbox._put

    def counted(found: Sequence[NewRun]) -> None:
        steps.append(len(found))
        put(found)

    monkeypatch.setattr(outbox, "PAGE", 3)
    monkeypatch.setattr(outbox, "_put", counted)
    with transaction.atomic():
        enqueued = [shop.add.enqueue(number).id for number in range(7)]
    assert (steps, runs(app)) == ([3, 3, 1], sorted(enqueued))
    monkeypatch.setattr(outbox, "PATIENCE", 0.0)
    with transaction.atomic():
        late = shop.add.enqueue(7)
    assert (steps, OutboxRun.objects.get().pk) == ([3, 3, 1], late.id)
    monkeypatch.setattr(outbox, "_put", put)
    monkeypatch.setattr(outbox, "SETTLED", -60.0)
    assert outbox.sweep("default") == 1, "a sweep has more patience than a request"
    assert runs(app) == sorted([*enqueued, late.id])


def test_what_was_rolled_back_is_not_remembered(app: Rota) -> None:
    handed: list[Sequence[str]] = []
    with pytest.MonkeyPatch.context() as seen:
        seen.setattr(outbox, "hand_over", lambda ids, alias: handed.append(ids))
        for number in range(5):
            with suppress(Stop), transaction.atomic():
                shop.add.enqueue(number)
                raise Stop
        with transaction.atomic():
            kept = shop.add.enqueue(5)
            transaction.on_commit(lambda: None)
            other = shop.add.enqueue(6)
    assert [*filter(None, handed)] == [[kept.id, other.id]]
    OutboxRun.objects.all().delete()


def test_one_query_inside_a_transaction_and_none_outside(app: Rota) -> None:
    with transaction.atomic(), CaptureQueriesContext(connections["default"]) as inside:
        shop.add.enqueue(1)
    with CaptureQueriesContext(connections["default"]) as outside:
        shop.add.enqueue(1)
    assert [query["sql"].split()[0] for query in inside.captured_queries] == ["INSERT"]
    assert outside.captured_queries == []


def test_a_process_that_dies_after_its_commit_loses_nothing_and_a_sweep_twice_is_once(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(outbox, "hand_over", lambda ids, alias: None)  # as if the process had died
        with transaction.atomic():
            result = shop.add.enqueue(1)
    assert runs(app) == []
    assert task_backends["default"].get_result(result.id).status == TaskResultStatus.READY
    assert outbox.sweep("default") == 0, "the process that wrote the row has two seconds"
    monkeypatch.setattr(outbox, "SETTLED", -60.0)
    row = OutboxRun.objects.get()
    assert outbox.sweep("default") == 1
    with app.running(grace=5):
        app.portal.call(lambda: app.client().ended(result.id, 20))
    row.save(force_insert=True)  # as if the sweep had died between the put and the delete
    assert outbox.sweep("default") == 1
    assert runs(app) == [result.id]
    assert task_backends["default"].get_result(result.id).attempts == 1
    assert not OutboxRun.objects.exists()


def test_a_sweep_takes_no_row_that_another_sweep_has_taken(pg: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "SETTLED", -60.0)
    monkeypatch.setattr(outbox, "hand_over", lambda ids, alias: None)  # as if the process had died
    with transaction.atomic(using="pg"):
        shop.report.enqueue("ada")
    swept: list[int] = []

    def sweep() -> None:
        swept.append(outbox.sweep("pg"))
        connections["pg"].close()

    with transaction.atomic(using="pg"):
        assert list(OutboxRun.objects.using("pg").select_for_update()), "as a sweep locks them"
        other = threading.Thread(target=sweep)
        other.start()
        other.join(60)
        assert swept == [0], "it neither waited nor put"
    assert outbox.sweep("pg") == 1
    assert len(runs(pg)) == 1


@pytest.mark.parametrize("zone", [None, "America/Los_Angeles", "Asia/Tokyo"])
def test_a_row_of_yesterday_is_looked_for_before_it_is_put(
    app: Rota, zone: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the project has plain datetimes: the database has written UTC, and only it says how old a row is."""
    monkeypatch.setattr(outbox, "hand_over", lambda ids, alias: None)
    with override_settings(**{} if zone is None else {"USE_TZ": False, "TIME_ZONE": zone}):
        with transaction.atomic():
            result, young = shop.add.enqueue(1), shop.add.enqueue(2)
        for row, hours in ((result, 13), (young, 11)):
            OutboxRun.objects.filter(pk=row.id).update(created_at=Now() - timedelta(hours=hours))
        assert outbox.sweep("default") == 2
    assert runs(app) == sorted([result.id, young.id])
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"the run {result.id} was in the outbox for more than 12 hours"
    ]


def test_the_doctor_names_the_runs_that_nobody_has_handed_over(
    app: Rota, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found() -> str:
        call_command("rota", "doctor", "--json")
        answer = call_service(Principal("ada", rights_of("admin")), "GET", f"{API}/doctor").json
        told = [*json.loads(capsys.readouterr().out), *answer["items"]]
        both = [f"{each['verdict']}: {each['detail']}" for each in told if each["check"] == "outbox"]
        assert both[0] == both[1], "on the command line and over HTTP"
        return both[0]

    monkeypatch.setattr(outbox, "hand_over", lambda ids, alias: None)
    with transaction.atomic():
        results = [shop.add.enqueue(number) for number in range(7)]
    assert found() == "ok: no run waits there for long"
    OutboxRun.objects.update(created_at=Now() - timedelta(minutes=2))
    assert found() == "warn: 7 runs for more than a minute"
    OutboxRun.objects.filter(pk__in=[each.id for each in results[:6]]).update(created_at=Now() - timedelta(hours=13))
    named = ", ".join(sorted(each.id for each in results[:6])[:5])
    assert found() == f"warn: 6 runs for more than 12 hours: {named} and 1 more"
    assert outbox.sweep("default") == 7
    assert found() == "ok: no run waits there for long"


def test_the_doctor_says_that_the_outbox_is_not_migrated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = {"ENGINE": "django.db.backends.sqlite3", "NAME": tmp_path / "bare.sqlite3"}
    for how, said in (("auto", ["the table cannot be read: no such table: rota_outbox"]), ("off", [])):
        with (
            alias("bare", missing),
            override_settings(ROTA={"DATABASE": "bare", "TRANSACTIONS": how}),
            project_app().bound_to("memory://"),
        ):
            call_command("rota", "doctor", "--json")
        checks = json.loads(capsys.readouterr().out)
        assert [each["detail"] for each in checks if each["check"] == "outbox"] == said


def test_the_worker_sweeps(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "hand_over", lambda ids, alias: None)
    monkeypatch.setattr(outbox, "SETTLED", -60.0)
    with transaction.atomic():
        first = shop.add.enqueue(1)
    outbox_read = threading.Event()
    with app.running(grace=5):
        while not runs(app):
            outbox_read.wait(0.02)
        app.portal.call(lambda: app.client().ended(first.id, 20))


def test_on_commit_and_off(app: Rota) -> None:
    with override_settings(ROTA={"TRANSACTIONS": "on_commit"}):
        with transaction.atomic():
            shop.add.enqueue(1)
            enqueue_on_commit(shop.add, 2)
            assert runs(app) == []
        assert len(runs(app)) == 2
    with override_settings(ROTA={"TRANSACTIONS": "off"}), transaction.atomic():
        shop.add.enqueue(1)
        assert len(runs(app)) == 3


def test_in_the_same_postgresql_database_the_run_is_part_of_the_transaction(pg: Rota) -> None:
    with suppress(Stop), transaction.atomic(using="pg"):
        shop.add.enqueue(1)
        raise Stop
    assert runs(pg) == []
    with transaction.atomic(using="pg"):
        with CaptureQueriesContext(connections["pg"]) as inside:
            result = shop.add.enqueue(1)
        assert runs(pg) == []
    assert [query["sql"].split("(")[0].rpartition(".")[2] for query in inside.captured_queries] == ["submit"]
    assert runs(pg) == [result.id]
    assert not OutboxRun.objects.using("pg").exists()


def test_an_open_transaction_delays_no_claim_and_no_submit_of_another_key(pg: Rota) -> None:
    with transaction.atomic(using="pg"):
        mine = shop.report.enqueue("ada")  # unique: through the outbox
        shop.add.enqueue(1)
        others: list[str] = []

        def other_process() -> None:
            others.append(shop.report.enqueue("ada").id)
            others.append(shop.add.enqueue(2).id)

        thread = threading.Thread(target=other_process)
        thread.start()
        thread.join(10)
        assert len(others) == 2
        with pg.running(grace=5):
            assert pg.portal.call(lambda: pg.client().ended(others[1], 10)).state == "succeeded"
    assert OutboxRun.objects.using("pg").filter(pk=mine.id).count() == 0
