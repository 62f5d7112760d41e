"""Real worker processes of a project under signals: nothing stays RUNNING, and nothing runs twice."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings

from rota.django.project import app as project_app
from rota.django.tasks_api import AnyResult, TaskResultStatus
from tests.django.shop import tasks as shop
from tests.faults.conftest import in_place
from tests.processes import Process
from tests.server_fixtures import Servers

READY, RUNNING, FAILED, SUCCESSFUL = TaskResultStatus
LEASE = 2.0


@pytest.fixture
def shared(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path, namespace: str, database: None
) -> Iterator[str]:
    """The URL of a store that processes share; the app of the project has it here."""
    kind = str(request.param)
    url = f"sqlite:///{tmp_path}/rota.db" if kind == "sqlite" else in_place(servers.get(kind).url, namespace)
    with project_app().bound_to(url):
        yield url


def worker(url: str, *options: str, grace: float = 20.0) -> Process:
    """`manage.py rota_worker` for the store at `url`."""
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.django.settings",
        "SHOP_DIR": str(settings.BASE_DIR),
        "SHOP_ROTA": json.dumps({"URL": url}),
        "ROTA_LEASE": str(LEASE),
        "ROTA_GRACE": str(grace),
    }
    return Process("-m", "django", "rota_worker", *options, env=environment)


def statuses(results: list[AnyResult]) -> list[TaskResultStatus]:
    for result in results:
        result.refresh()
    return [result.status for result in results]


def ended(result: AnyResult) -> AnyResult:
    app = project_app()
    app.portal.call(lambda: app.client().ended(result.id, 60))
    result.refresh()
    return result


@pytest.mark.parametrize(
    "shared",
    [
        "sqlite",
        pytest.param("valkey-9", marks=pytest.mark.soak),
        pytest.param("postgres-18", marks=pytest.mark.soak),
    ],
    indirect=True,
)
def test_however_workers_end_nothing_stays_running_and_nothing_runs_twice(shared: str, tmp_path: Path) -> None:
    go, lines = tmp_path / "go", tmp_path / "lines"
    names = ("terminated", "interrupted twice", "killed")
    held = [shop.hold.using(queue_name=name.split()[0]).enqueue(name, str(go)) for name in names]
    left = shop.leave.using(queue_name="terminated", priority=1).enqueue()
    with ExitStack() as stack:
        terminated, impatient, killed = (
            stack.enter_context(worker(shared, "--queues", name.split()[0], grace=0.1 if name == names[0] else 60.0))
            for name in names
        )
        for each in (terminated, impatient, killed):
            each.wait_for("holds")
        assert ended(left).status == FAILED, "SystemExit fails the run, and its worker lives"
        assert statuses(held) == [RUNNING] * 3
        terminated.signal(signal.SIGTERM)
        impatient.signal(signal.SIGINT)
        impatient.wait_for("stopping")
        impatient.signal(signal.SIGINT)
        killed.signal(signal.SIGKILL)
        codes = [each.wait() for each in (terminated, impatient, killed)]
        assert statuses(held[:2]) == [READY] * 2, "they were given back at once"
    assert (codes[0], codes[2]) == (0, -signal.SIGKILL)
    go.touch()
    many = [shop.write.enqueue(str(lines), str(number)) for number in range(30)]
    with ExitStack() as stack:  # not --burst: a burst may end before the lease of the killed worker has lapsed
        workers = [stack.enter_context(worker(shared)) for _ in range(3)]
        assert {ended(result).status for result in held} == {SUCCESSFUL}, "also what the killed worker held"
        assert {ended(result).status for result in many} == {SUCCESSFUL}
        for each in workers:
            each.wait_for("started on")
            each.signal(signal.SIGTERM)
        assert [each.wait() for each in workers] == [0, 0, 0]
    assert sorted(map(int, lines.read_text().split())) == list(range(30))
    assert [result.attempts for result in held] == [2, 2, 2]
    assert [[error.exception_class.__name__ for error in result.errors] for result in held] == [[], [], ["LeaseLost"]]


@pytest.mark.parametrize("shared", ["valkey-9", "postgres-18"], indirect=True)
def test_a_worker_that_is_terminated_gives_its_run_to_the_next_one(shared: str, tmp_path: Path) -> None:
    go = tmp_path / "go"
    held = shop.hold.enqueue("terminated", str(go))
    with worker(shared, grace=0.1) as terminated:
        terminated.wait_for("holds")
        terminated.signal(signal.SIGTERM)
        assert terminated.wait() == 0
        assert statuses([held]) == [READY]
    go.touch()
    with worker(shared, "--burst") as other:
        assert other.wait() == 0
    assert (statuses([held]), held.attempts, held.errors) == ([SUCCESSFUL], 2, [])


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("shared", ["sqlite"], indirect=True)
def test_one_signal_lets_the_run_in_hand_end_and_starts_no_other(
    shared: str, sent: signal.Signals, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    working = shop.finish.enqueue(str(go))
    with worker(shared, grace=60.0) as stopped:
        stopped.wait_for("works")
        stopped.signal(sent)
        stopped.wait_for("stopping")
        later = shop.add.enqueue(1)
        assert statuses([working, later]) == [RUNNING, READY]
        go.touch()
        assert stopped.wait() == 0
    assert (statuses([working, later]), working.return_value) == ([SUCCESSFUL, READY], "finished")
    assert (working.attempts, later.attempts) == (1, 0)
