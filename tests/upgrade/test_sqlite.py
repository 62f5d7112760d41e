"""A store written by the schema and wire version before opens, keeps what it holds, and works."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rota import At, Rota, State
from rota.domain.lifecycle import Lost, Succeeded, decide
from rota.domain.settlement import Verdict
from rota.store import RunQuery
from rota.stores.sqlite import SqliteBackend

OLD = (Path(__file__).parent / "sqlite_1.sql").read_text()


@pytest.fixture
def backend(tmp_path: Path) -> SqliteBackend:
    path = tmp_path / "rota.db"
    connection = sqlite3.connect(path)
    connection.executescript(OLD)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return SqliteBackend(path)


async def test_every_run_of_the_old_store_is_there_as_it_was(backend: SqliteBackend) -> None:
    async with backend.open() as store:
        runs = {run.args: run for run in (await store.runs(RunQuery())).runs}
    stands = {run.args.decode(): (run.state, run.priority, run.key, run.failures) for run in runs.values()}
    assert stands == {
        '{"path":"due-0.png"}': (State.RUNNING, 0, "due-0.png", 0),
        '{"path":"due-1.png"}': (State.QUEUED, 0, "due-1.png", 0),
        '{"path":"due-2.png"}': (State.QUEUED, 0, "due-2.png", 0),
        '{"path":"later.png","width":640}': (State.QUEUED, 5, "later.png", 0),
        '{"path":"paused.png"}': (State.PAUSED, 0, "paused.png", 0),
        '{"day":"2026-11-14"}': (State.SUCCEEDED, 0, "2026-11-14", 0),
        '{"day":"2026-11-15"}': (State.FAILED, 0, "2026-11-15", 1),
    }
    assert runs[b'{"day":"2026-11-14"}'].result == b"7"
    assert str(runs[b'{"day":"2026-11-15"}'].error) == "Boom: no"


async def test_the_work_goes_on(backend: SqliteBackend) -> None:
    async with backend.open() as store:
        backend.skew += 60
        claim = await store.claim("new", 1, ["resize"], 10, 30)
        assert [run.args for run in claim.runs] == [b'{"path":"due-1.png"}'], "the limit of two counts the old lease"
        assert [run.worker for run in claim.lapsed] == ["dead"]
        endings = [decide(claim.lapsed[0], Lost()), decide(claim.runs[0], Succeeded())]
        assert (await store.settle(endings)).items == [Verdict.APPLIED, Verdict.APPLIED]


async def test_what_came_with_the_new_schema_works_beside_what_was_there(backend: SqliteBackend) -> None:
    app = Rota(backend)

    @app.task(unique="done", key="{day}")
    async def once(day: str) -> None: ...

    @app.task
    async def resize(path: str) -> None: ...

    async with app.client():
        store = await app.client().store()
        assert not (await app.submit_many([once.bind("2026-11-14")]))[0].created, "its mark is known"
        await app.schedules.put("later", At(datetime(2999, 1, 1, tzinfo=UTC)), resize.bind("a.png"))
        assert [schedule.id for schedule in await app.schedules.list()] == ["later"]
        assert [row.task for row in (await store.depths()).items] == ["resize"]
