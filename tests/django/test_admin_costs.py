"""The first pages of the admin cost the same however many runs have ended: on every store, by what the store does."""

import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from rota import Rota
from rota.django.project import app as project_app
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.store import ClaimRequest, RunQuery
from storekit.contract import new_run
from storekit.servers import PostgresServer, RedisServer
from tests.django.aliases import asked
from tests.faults.conftest import in_place
from tests.server_fixtures import Servers

PAGES = ("run/", "run/?state=running", "task/", "schedule/", "flow/", "worker/")
TASK = "tests.django.shop.tasks.add"
FEW, MANY, BATCH = 120, 3000, 120
"""A page has 50 rows: FEW fill it. What reads all ended runs does 25 times as much with MANY."""
SLACK = 3 * BATCH
"""What the last batch leaves behind, such as dead rows in an index of PostgreSQL."""
COARSE = 10
"""Instructions of SQLite's machine between two counts."""
ENDED = """
SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""
READ = """
SELECT (SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_all_tables WHERE schemaname = $1)
     + (SELECT sum(idx_tup_read) FROM pg_stat_all_indexes WHERE schemaname = $1)
"""
Counter = Callable[[], int]
"""Says how much the store has done so far."""


@pytest.fixture(params=["memory", "sqlite", "valkey-9", "postgres-18"])
def counted(
    request: pytest.FixtureRequest,
    servers: Servers,
    tmp_path: Path,
    namespace: str,
    database: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Rota, Counter]]:
    """The app of the project over each store, and what counts the work of the store."""
    kind = str(request.param)
    if kind == "memory":
        with project_app().bound_to("memory://") as app:
            yield app, lines(app)
            app.portal.call(untraced)
    elif kind == "sqlite":
        count = instructions(monkeypatch)
        with project_app().bound_to(f"sqlite:///{tmp_path}/rota.db") as app:
            yield app, count
    else:
        server = servers.get(kind)
        with project_app().bound_to(in_place(server.url, namespace)) as app:
            yield app, commands(server) if isinstance(server, RedisServer) else tuples(server, namespace)


def lines(app: Rota) -> Counter:
    """Count the lines of Python that the thread of the store does, each turn of a loop too, from the first call on."""
    seen = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal seen
        seen += event == "line"
        return trace

    async def begin() -> int:
        sys.settrace(trace)
        return seen

    return lambda: app.portal.call(begin)


async def untraced() -> None:
    sys.settrace(None)


def instructions(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Count the instructions of SQLite's machine in connections that are opened from now on."""
    seen, connect = 0, sqlite3.connect

    def count() -> int:
        nonlocal seen
        seen += COARSE
        return 0

    def counting(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **kwargs)
        connection.set_progress_handler(count, COARSE)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counting)
    return lambda: seen


def commands(server: RedisServer) -> Counter:
    """Count commands, those of scripts too, and keys that were looked up."""

    def count() -> int:
        calls = sum(int(str(each).split("calls=")[1].split(",")[0]) for each in server.info("commandstats").values())
        return calls + int(server.info("stats")["keyspace_hits"])

    return count


def tuples(server: Any, schema: str) -> Counter:
    """Count the rows that tables and indexes gave. A server adds them up when a connection ends."""
    assert isinstance(server, PostgresServer)

    def count() -> int:
        asked(server.url, ENDED)
        return int(asked(server.url, READ, schema) or 0)

    return count


def end_runs(app: Rota, count: int) -> None:
    """Let so many runs come and end."""

    async def fill() -> None:
        store = await app.client().store()
        for number in range(count // BATCH):
            await store.put([new_run(TASK) for _ in range(BATCH)])
            claim = await store.claim(ClaimRequest(f"filler {count}", number + 1, [TASK], BATCH, 60.0))
            await store.settle([settlement_of(run, Succeeded()) for run in claim.runs])

    app.portal.call(fill)
    page = app.portal.call(lambda: app.client().runs(RunQuery(limit=50, order="finished")))
    assert len(page.runs) == 50


@pytest.fixture
def browser(database: None) -> Iterator[Browser]:
    browser = Browser()
    browser.force_login(User.objects.create_superuser("grace", password="x"))
    yield browser
    User.objects.all().delete()


def costs(app: Rota, count: Counter, browser: Browser, pages: Sequence[str]) -> dict[str, list[int]]:
    """Return what each page costs when FEW runs have ended, and when MANY have."""
    found: dict[str, list[int]] = {page: [] for page in pages}
    for runs in (FEW, MANY):
        end_runs(app, runs)
        for page in pages:
            assert browser.get(f"/admin/rota/{page}").status_code == 200  # so that caches are warm
            before = count()
            text = browser.get(f"/admin/rota/{page}").content.decode()
            found[page].append(count() - before)
            assert page != "run/" or text.count('aria-label="Why, of ') == 50
    return found


def test_the_first_pages_cost_the_same_with_few_and_with_many_ended_runs(
    counted: tuple[Rota, Counter], browser: Browser
) -> None:
    found = costs(*counted, browser, PAGES)
    for page, (few, many) in found.items():
        assert many <= 2 * few + SLACK, f"{page}: the work grows with the runs that have ended: {found}"
    assert found["run/"][0] > 0, "the count counts"


@pytest.mark.parametrize("counted", ["sqlite", "postgres-18"], indirect=True)
def test_few_runs_that_wait_are_found_among_many_that_have_ended(
    counted: tuple[Rota, Counter], browser: Browser
) -> None:
    """Memory and Redis walk back through a bounded number of runs, and say how far they got."""
    ((few, many),) = costs(*counted, browser, ["run/?state=queued"]).values()
    assert many <= 2 * few + SLACK
