"""A store that an earlier version left opens, keeps what it holds, and works.

What it left is in `sqlite_*.sql`, `redis_*.json` and `postgres_*.sql`; the number is that of its schema or format.
Files of released versions stay as they are; `python -m tests.upgrade.dumps` writes the newest.
"""

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import asyncpg
import pytest
import redis

from rota import At, Rota
from rota.domain.decision import DecisionCount, Reason
from rota.domain.guards import Mark
from rota.domain.lifecycle import Lost, Succeeded
from rota.domain.run import Progress, Run, State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import Backend, MarkRow, Retention, RunQuery, WorkerSeen
from rota.stores.postgres import PostgresBackend
from rota.stores.sqlite import SqliteBackend
from storekit.contract import Stage, new_run
from storekit.contract.stage import BOOM
from storekit.contract.timetable import Timetable, new_schedule, new_tick, tick_run
from storekit.servers import PostgresServer, RedisServer
from tests.stores.redis_stages import at
from tests.upgrade.dumps import FOLDER, postgres_load, redis_load, sqlite_load
from tests.upgrade.old_store import BIG, MAIL, OFF, ONCE, RESIZE, SPECS

OLD = {path.stem: path.read_text() for path in FOLDER.iterdir() if path.suffix in (".sql", ".json")}
HOUR = 3600.0


def on_sqlite(path: Path, dump: str) -> Backend:
    sqlite_load(path, dump)
    return SqliteBackend(path)


def on_redis(server: RedisServer, namespace: str, dump: str) -> Backend:
    backend = at(server.url, namespace)
    with redis.Redis.from_url(server.url) as client:
        redis_load(client, backend.address.root, dump)
    return backend


async def on_postgres(server: PostgresServer, namespace: str, version: int, dump: str) -> PostgresBackend:
    connection = await asyncpg.connect(server.url)
    try:
        await postgres_load(connection, namespace, version, dump)
    finally:
        await connection.close()
    return PostgresBackend.from_url(f"{server.url}&schema={namespace}")


def test_there_is_an_old_store_of_each_kind() -> None:
    assert {name.partition("_")[0] for name in OLD} == {"sqlite", "redis", "postgres"}


@pytest.fixture(params=sorted(OLD))
async def stage(
    request: pytest.FixtureRequest, valkey: RedisServer, postgres: PostgresServer, namespace: str, tmp_path: Path
) -> AsyncIterator[Stage]:
    """The old store, opened by this version."""
    server, _, version = request.param.partition("_")
    if server == "sqlite":
        backend = on_sqlite(tmp_path / "rota.db", OLD[request.param])
    elif server == "redis":
        backend = on_redis(valkey, namespace, OLD[request.param])
    else:
        backend = await on_postgres(postgres, namespace, int(version), OLD[request.param])
    async with backend.open() as store:
        yield Stage(backend, store)


async def everything(stage: Stage) -> dict[str, Run]:
    return {run.id: run for run in (await stage.store.runs(RunQuery())).runs}


async def test_every_run_of_the_old_store_is_there_as_it_was(stage: Stage) -> None:
    runs = await everything(stage)
    assert {run.id: (run.task, run.state, run.priority, run.key, run.fence) for run in runs.values()} == {
        "good": (ONCE, State.SUCCEEDED, 0, "14", 1),
        "bad": (ONCE, State.FAILED, 0, "15", 1),
        "unwanted": (ONCE, State.CANCELLED, 0, None, 0),
        "running": (RESIZE, State.RUNNING, 0, "a.png", 1),
        "failed once": (MAIL, State.QUEUED, 0, "m", 1),
        "parked": (RESIZE, State.QUEUED, 0, "a.png", 0),
        "child": (RESIZE, State.QUEUED, 0, None, 0),
        "queued": (RESIZE, State.QUEUED, 0, "b.png", 0),
        "big": (RESIZE, State.QUEUED, 0, None, 0),
        "later": (RESIZE, State.QUEUED, 5, None, 0),
        "paused": (RESIZE, State.PAUSED, 0, None, 0),
        "off": (OFF, State.QUEUED, 0, None, 0),
    }
    assert (runs["good"].result, runs["good"].attempts[0].seconds) == (b"7", 0.25)
    assert (runs["bad"].error, runs["unwanted"].note) == (BOOM, "not today")
    assert (runs["running"].worker, runs["running"].saved) == ("dead", b"3")
    assert runs["running"].progress == Progress(0.5, "half")
    assert [(attempt.outcome, attempt.error) for attempt in runs["failed once"].attempts] == [("failed", BOOM)]
    assert (runs["child"].needs, runs["big"].args) == (("running",), BIG)


async def test_all_else_is_there_as_it_was(stage: Stage) -> None:
    store = stage.store
    specs = {spec.name: spec for spec in (await store.rows(TaskSpec)).items}
    assert {name for name, spec in specs.items() if spec.paused} == {OFF}
    assert [specs[spec.name].limit for spec in SPECS] == [spec.limit for spec in SPECS]
    assert [specs[spec.name].rate for spec in SPECS] == [spec.rate for spec in SPECS]
    schedules = (await store.rows(Schedule)).items
    assert [(plan.id, plan.trigger, plan.paused, plan.note) for plan in schedules] == [
        ("held", "every 1m", True, "too loud"),
        ("report", "every 1m", False, None),
    ]
    marks = {(row.task, row.key): row.mark for row in (await store.rows(MarkRow)).items}
    assert marks[ONCE, "by hand"] == Mark(succeeded_at=1e9, finished_at=1e9)
    assert marks.keys() == {(ONCE, "by hand"), (ONCE, "14"), (ONCE, "15")}
    decided = {(row.task, row.key, row.reason): (row.count, row.by) for row in (await store.rows(DecisionCount)).items}
    assert decided[ONCE, "14", Reason.ALREADY_DONE] == (1, None)
    assert decided[OFF, "", Reason.PAUSED] == (1, "eve")
    assert [(seen.name, seen.report.host) for seen in (await store.rows(WorkerSeen)).items] == [
        ("dead", ""),
        ("reporter", "h"),
    ]
    assert {row.task: (row.queued, row.running, row.paused) for row in (await store.depths()).items} == {
        RESIZE: (5, 1, 1),
        MAIL: (1, 0, 0),
        OFF: (1, 0, 0),
    }


async def test_the_work_goes_on_to_its_end(stage: Stage) -> None:
    stage.wait(HOUR)  # the lease has lapsed, what failed once is due again
    ended: Counter[str] = Counter()
    while True:
        claim = await stage.claim("new", 10, tasks=[RESIZE, MAIL, ONCE, OFF])
        for run in claim.lapsed:
            assert (run.id, await stage.end(run, Lost())) == ("running", "applied")
        for run in claim.runs:
            assert await stage.end(run, Succeeded()) == "applied"
        ended.update(run.id for run in claim.runs)
        if not claim.runs and not claim.lapsed:
            break
    assert ended == Counter(["running", "parked", "child", "queued", "big", "failed once"])
    left = {run.id: run.state for run in (await everything(stage)).values() if not run.state.final}
    assert left == {"later": State.QUEUED, "paused": State.PAUSED, "off": State.QUEUED}
    assert {row.task: row.running for row in (await stage.store.depths()).items} == {RESIZE: 0, OFF: 0}


async def test_its_limits_marks_and_schedules_are_obeyed(stage: Stage) -> None:
    claim = await stage.claim("new", 10, tasks=[RESIZE])
    assert [run.id for run in claim.runs] == ["queued"], "the limit of two counts the old lease"
    assert not await stage.admit(new_run(ONCE, key="14", unique="done", join="refuse")), "its mark is known"
    timetable = Timetable(stage)
    same = [new_schedule("report", 1e9), new_schedule("held", 1e9, catch_up="all")]
    assert await timetable.declare(*same) == ["unchanged", "unchanged"]
    stage.wait(HOUR)
    assert "report" in [plan.id for plan in (await stage.claim("other")).schedules]
    assert await timetable.fired(new_tick(await timetable.see("report"), tick_run("ticked"))) == [True]
    assert (await stage.see(new_run(id="ticked"))).state is State.QUEUED


async def test_it_can_be_resumed_cancelled_and_swept(stage: Stage) -> None:
    assert await stage.resume(new_run(id="paused")) == 1
    assert await stage.cancel(new_run(id="later"))
    stage.wait(10 * 86_400)
    while (await stage.store.sweep(Retention(succeeded=0, failed=0, most=0, least=0))).more:
        pass
    runs = await everything(stage)
    assert {"good", "bad", "unwanted"}.isdisjoint(runs)
    assert runs["paused"].state is State.QUEUED


async def test_an_app_works_with_what_was_there(stage: Stage) -> None:
    app = Rota(stage.backend)

    @app.task(unique="done", key="{day}")
    async def once(day: str) -> None: ...

    @app.task
    async def resize(path: str) -> None: ...

    async with app.client():
        assert not (await app.submit_many([once.bind("14")]))[0].created, "its mark is known"
        assert (await app.submit_many([once.bind("16")]))[0].created
        await app.schedules.put("later", At(datetime(2999, 1, 1, tzinfo=UTC)), resize.bind("a.png"))
        assert {schedule.id for schedule in await app.schedules.list()} == {"held", "later", "report"}


async def test_a_file_from_before_the_rollups_keeps_its_figures_and_its_version(tmp_path: Path) -> None:
    backend = on_sqlite(tmp_path / "rota.db", OLD["sqlite_1"])
    async with backend.open() as store:
        totals = {stat.tally.task: stat.tally.succeeded for stat in (await store.stats(None)).items}
    assert totals == {RESIZE: 5}
    with closing(sqlite3.connect(tmp_path / "rota.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,), "the version before can come back"


async def test_a_schema_from_before_the_hand_over_keeps_its_version_and_hands_runs_over(
    postgres: PostgresServer, namespace: str
) -> None:
    backend = await on_postgres(postgres, namespace, 1, OLD["postgres_1"])
    async with backend.open() as store, store.changes():
        stage = Stage(backend, store)
        await stage.claim("new", tasks=["fresh"], ready=True)
        await stage.put(fresh := new_run("fresh"))
        assert (await stage.see(fresh)).state is State.RUNNING
    assert await backend.planned() == (1, 1, False), "the version before can come back"
