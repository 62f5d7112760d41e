"""A row that cannot be read is left out and told of once; everybody else goes on, and a new publish mends it."""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncpg
import msgspec
import pytest

from rota import Every, Limit, Rota
from rota.app.core import core_of
from rota.doctor.store_checks import store_checks
from rota.domain.guards import Mark
from rota.domain.run import State
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.store import Backend, ClaimRequest, Command, MarkRow, Report, Retention, RunQuery, Scope, Tally, WorkerSeen
from rota.stores.postgres import PostgresBackend
from rota.stores.retention import MARK_MEMORY
from rota.stores.sqlite import SqliteBackend
from rota.stores.unreadable import gathered
from rota.testing import drain
from storekit.contract import Stage, new_run
from storekit.servers import RedisServer
from tests.stores.redis_stages import at

BAD_SPEC = '{"name":"bad","enabled":null,"limit":{"total":0}}'
SPOIL_SCHEDULE = """
local plan = cmsgpack.unpack(redis.call("HGET", KEYS[1] .. "schedules", ARGV[1]))
plan[2] = '{"id": 5}'
redis.call("HSET", KEYS[1] .. "schedules", ARGV[1], cmsgpack.pack(plan))
"""
SPOIL_RUN = """
local key = KEYS[1] .. "r:" .. ARGV[1]
local text = redis.call("GET", key)
local fields = { cmsgpack.unpack_limit(text, 10, 2) }
fields[9] = "perhaps"
redis.call("SET", key, text:sub(1, 2) .. cmsgpack.pack(unpack(fields, 2)))
"""

Spoil = Callable[[str, str], Awaitable[None]]
"""Writes a bad row of this kind and name."""


class Place:
    def __init__(self, backend: Backend, spoil: Spoil) -> None:
        self.backend, self.spoil = backend, spoil


def on_sqlite(path: Path) -> Place:
    async def spoil(kind: str, name: str) -> None:
        connection = sqlite3.connect(path)
        with connection:
            if kind == "spec":
                row = BAD_SPEC if name == "bad" else "no json at all"
                connection.execute("INSERT OR REPLACE INTO specs (name, spec) VALUES (?, ?)", (name, row))
                connection.execute("UPDATE clock SET specs = specs + 1")
            elif kind == "schedule":
                connection.execute("UPDATE schedules SET schedule = '{\"id\": 5}' WHERE id = ?", (name,))
            elif kind == "worker":
                connection.execute("UPDATE workers SET report = '[7]' WHERE name = ?", (name,))
            else:
                connection.execute("UPDATE runs SET attempts = '[7]' WHERE id = ?", (name,))
        connection.close()

    return Place(SqliteBackend(path), spoil)


def on_redis(server: RedisServer, namespace: str) -> Place:
    root = f"{{{namespace}}}"

    async def spoil(kind: str, name: str) -> None:
        if kind == "spec" and name == "bad":
            row = msgspec.msgpack.encode([BAD_SPEC, False, True, False, False, False, False, False, "", "", 0])
            server.send("HSET", f"{root}specs", name, row.decode("latin-1"))
        elif kind == "spec":
            server.send("HSET", f"{root}specs", name, "no messagepack at all")
        elif kind == "worker":
            server.send("HSET", f"{root}reports", name, "[7]")
        else:
            server.send("EVAL", SPOIL_SCHEDULE if kind == "schedule" else SPOIL_RUN, "1", root, name)

    return Place(at(server.url, namespace), spoil)


def on_postgres(backend: PostgresBackend) -> Place:
    async def spoil(kind: str, name: str) -> None:
        address = backend.address
        connection = await asyncpg.connect(address.dsn, server_settings={"search_path": address.schema})
        if kind == "spec":
            row = BAD_SPEC if name == "bad" else "no json at all"
            await connection.execute(
                "INSERT INTO specs (name, spec, enabled, gated) VALUES ($1, $2, true, false) "
                "ON CONFLICT (name) DO UPDATE SET spec = excluded.spec",
                name,
                row,
            )
        elif kind == "schedule":
            await connection.execute("UPDATE schedules SET declared = '{\"id\": 5}' WHERE id = $1", name)
        elif kind == "worker":
            await connection.execute("UPDATE worker_states SET report = '[7]' WHERE name = $1", name)
        else:
            await connection.execute("UPDATE queue SET attempts = ARRAY['7'] WHERE id = $1", name)
        await connection.close()

    return Place(backend, spoil)


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, namespace: str) -> Place:
    match request.param:
        case "sqlite":
            return on_sqlite(tmp_path / "rota.db")
        case "redis":
            return on_redis(request.getfixturevalue("valkey"), namespace)
        case _:
            return on_postgres(request.getfixturevalue("postgres_backend"))


def an_app(backend: Backend, ran: list[str], name: str = "job") -> Rota:
    app = Rota(backend, name=f"app-of-{name}")

    @app.task(name=name, limit=Limit(2))
    async def job() -> None:
        ran.append(name)

    return app


@pytest.mark.parametrize("bad", ["bad", "worse"])
async def test_a_bad_spec_holds_up_nobody_and_is_overwritten(
    place: Place, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []
    app = an_app(place.backend, ran)
    async with place.backend.open() as store:
        await place.spoil("spec", bad)
        await app.tasks["job"].submit()
        await drain(app)
        assert ran == ["job"]
        for _ in range(3):
            assert [spec.name for spec in (await store.rows(TaskSpec)).items] == ["job"]
        told = [record for record in caplog.records if f"spec {bad} cannot be read" in record.message]
        assert len(told) <= 1, "not at every read"

        mended = an_app(place.backend, ran, bad)
        await mended.tasks[bad].submit()
        await drain(mended)
        assert ran == ["job", bad]
        assert [spec.name for spec in (await store.rows(TaskSpec)).items] == [bad, "job"][:: 1 if bad < "job" else -1]
    await app.client().close()
    await mended.client().close()


async def test_a_bad_schedule_holds_up_nobody_and_a_declaration_takes_its_place(place: Place) -> None:
    app = Rota(place.backend, name="beats")

    @app.task(schedule=Every(3600))
    async def beat() -> None: ...

    @app.task(schedule=Every(3600))
    async def other() -> None: ...

    await core_of(app).declare_schedules()
    await place.spoil("schedule", "beat")
    async with place.backend.open() as store:
        assert [schedule.id for schedule in (await store.rows(Schedule)).items] == ["other"]
        place.backend.skew += 3600
        claim = await store.claim(ClaimRequest("ada", 1, ["beat"], 1, 30))
        assert [schedule.id for schedule in claim.schedules] == ["other"]
        await core_of(app).declare_schedules()
        assert [schedule.id for schedule in (await store.rows(Schedule)).items] == ["beat", "other"]
    await app.client().close()


@pytest.mark.parametrize("bad", ["bad", "worse"])
async def test_the_sweep_goes_on_beside_rows_that_cannot_be_read(place: Place, bad: str) -> None:
    app = Rota(place.backend, name="beats")

    @app.task(schedule=Every(3600))
    async def beat() -> None: ...

    await core_of(app).declare_schedules()
    async with place.backend.open() as store:
        stage = Stage(place.backend, store)
        await place.spoil("spec", bad)
        await store.mark([MarkRow(task, "k", Mark(finished_at=await stage.now())) for task in (bad, "other")])
        await store.control(Command.PAUSE, ["beat"], of=Scope.SCHEDULES)
        await place.spoil("schedule", "beat")
        place.backend.skew += 2 * MARK_MEMORY
        swept = await store.sweep(Retention())
        assert (swept.expired, swept.forgotten, swept.more) == (0, 0, False)
        kept = {marked.task for marked in (await store.rows(MarkRow)).items}
        assert "other" not in kept
        if isinstance(place.backend, SqliteBackend):  # the servers hold the memory of marks beside the spec
            assert kept == {bad}, "nobody knows how long its marks are needed"
    await app.client().close()


async def test_a_run_that_cannot_be_read_is_not_claimed_and_the_others_are(place: Place) -> None:
    async with place.backend.open() as store:
        stage = Stage(place.backend, store)
        odd, plain = new_run(), new_run()
        await stage.put(odd, plain)
        await place.spoil("run", odd.id)
        assert [run.id for run in (await stage.claim(free=2)).runs] == [plain.id]
        assert (await stage.claim("bob", free=2)).runs == []
        page = await store.runs(RunQuery(state=[State.QUEUED, State.RUNNING]))
        assert [run.id for run in page.runs] == [plain.id]
        assert [(depth.queued, depth.running) for depth in (await store.depths()).items] == [(1, 1)]
        assert await stage.find(odd) == []


async def test_the_doctor_names_the_row_and_the_cure(place: Place) -> None:
    async with place.backend.open() as store:
        stage = Stage(place.backend, store)
        await stage.put(odd := new_run())
        await place.spoil("spec", "bad")
        await place.spoil("run", odd.id)
    checks = {check.name: check for check in await store_checks(place.backend)}
    assert "spec bad" in checks["rows"].detail
    assert f"run {odd.id}" in checks["rows"].detail
    assert "publishes it anew" in (checks["rows"].advice or "")
    assert checks["store"].verdict == "ok"


async def test_the_doctor_names_a_worker_that_cannot_be_read(place: Place) -> None:
    async with place.backend.open() as store:
        for worker in ("ada", "bob", "cyd"):
            await store.claim(ClaimRequest(worker, 1, [], 0, 30, Report(seats=1)))
        for worker in ("bob", "ada"):
            await place.spoil("worker", worker)
        assert [worker.name for worker in (await store.rows(WorkerSeen)).items] == ["cyd"]
    detail = {check.name: check for check in await store_checks(place.backend)}["rows"].detail
    assert "row worker ada (" in detail
    assert "row worker bob (" in detail


async def test_sqlite_names_and_outlives_workers_marks_and_charts_that_it_cannot_read(tmp_path: Path) -> None:
    backend = SqliteBackend(tmp_path / "rota.db")
    report = Report(tallies=(Tally("greet", succeeded=1),))
    async with backend.open() as store:
        for worker in ("ada", "bob"):
            await store.claim(ClaimRequest(worker, 1, [], 0, 30, report))
        await store.mark([MarkRow("greet", key, Mark(failures=1)) for key in ("good", "odd")])
        connection = sqlite3.connect(backend.path)
        with connection:
            connection.execute("UPDATE workers SET report = 'no json at all' WHERE name = 'ada'")
            connection.execute("UPDATE marks SET failures = 'many' WHERE key = 'odd'")
            connection.execute("UPDATE rollups SET tally = 'no json at all'")
        connection.close()
        assert [worker.name for worker in (await store.rows(WorkerSeen)).items] == ["bob"]
        assert [marked.key for marked in (await store.rows(MarkRow)).items] == ["good"]
        assert (await store.stats()).items == []
        with gathered() as odd:
            await store.rows(WorkerSeen)
            await store.rows(MarkRow)
            await store.stats()
        assert {name.partition(" of minute")[0] for _, name in odd} == {"worker ada", "mark greet odd", "tally greet"}
        await store.claim(ClaimRequest("bob", 2, [], 0, 30, report))
        assert [stat.tally.succeeded for stat in (await store.stats()).items][-1:] == [1], "counted anew"
