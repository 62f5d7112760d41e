"""Looks begin at floors: no row is below its floor, and dead rows cost nothing while VACUUM may not remove them."""

from collections.abc import AsyncIterator
from itertools import count

import asyncpg
import pytest

from rota.domain.lifecycle import Lost, Released, Succeeded, settlement_of
from rota.domain.policy import Limit
from rota.domain.run import NewRun, Run, State
from rota.domain.spec import TaskSpec
from rota.store import ClaimRequest, Command
from rota.stores.postgres import PostgresBackend
from rota.stores.postgres.columns import as_payload
from storekit.contract import Stage, new_run
from storekit.contract.stage import GREET
from storekit.servers import PostgresServer
from tests.stores.postgres_builds import checked, install

TURNS = 8
OPEN = "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE $1"
READ = "SELECT indexrelname AS name, idx_tup_read AS read FROM pg_stat_user_indexes WHERE schemaname = $1"


class Turns:
    """A store whose clock goes on by a second with every turn, in which a run comes and goes."""

    def __init__(self, stage: Stage, backend: PostgresBackend) -> None:
        self._stage = stage
        self._backend = backend

    def pass_seconds(self, seconds: float) -> None:
        self._backend.skew += seconds

    async def go_on(self, turns: int = TURNS, task: str = GREET) -> None:
        for _ in range(turns):
            self.pass_seconds(1)
            await self._stage.put(run := new_run(task, key="turn"))
            (taken,) = (await self._stage.claim(tasks=[task])).runs
            assert taken.id == run.id
            await self._stage.end(taken, Succeeded())


@pytest.fixture
async def postgres_backend(postgres: PostgresServer, namespace: str) -> AsyncIterator[PostgresBackend]:
    """A schema of its own: its functions check what they write."""
    backend = PostgresBackend.from_url(f"{postgres.url}&schema={namespace}")
    await backend.migrate()
    yield backend
    connection = await asyncpg.connect(postgres.url)
    await connection.execute(f"DROP SCHEMA {namespace} CASCADE")
    await connection.close()


@pytest.fixture
async def turns(stage: Stage, postgres_backend: PostgresBackend) -> Turns:
    await install(postgres_backend, checked())
    found = Turns(stage, postgres_backend)
    await found.go_on()
    return found


async def floors(backend: PostgresBackend) -> dict[int, float]:
    connection = await asyncpg.connect(backend.address.dsn)
    rows = await connection.fetch(f"SELECT kind, max(floor) AS floor FROM {backend.schema}.floors GROUP BY kind")
    await connection.close()
    return {row["kind"]: row["floor"] for row in rows}


async def test_floors_follow_the_present_time(stage: Stage, turns: Turns, postgres_backend: PostgresBackend) -> None:
    now = await stage.now()
    found = await floors(postgres_backend)
    assert sorted(found) == [0, 1, 2, 3]
    assert all(now - 3 <= floor < now for floor in found.values()), (now, found)


async def test_a_run_that_was_due_long_ago_comes_first(stage: Stage, turns: Turns) -> None:
    now = await stage.now()
    present, early, earliest = new_run(), new_run(at=now - 3600), new_run(at=now - 7200)
    await stage.put(present, early, earliest)
    assert [run.id for run in (await stage.claim(free=3)).runs] == [earliest.id, early.id, present.id]


async def test_a_released_run_comes_first_again(stage: Stage, turns: Turns) -> None:
    await stage.put(first := new_run())
    run = await stage.take()
    await turns.go_on()
    await stage.put(second := new_run())
    await stage.end(run, Released())
    assert [run.id for run in (await stage.claim(free=2)).runs] == [first.id, second.id]


async def test_a_paused_run_that_is_resumed_is_found(stage: Stage, turns: Turns) -> None:
    await stage.put(paused := new_run())
    await stage.store.control(Command.PAUSE, [paused.id])
    await turns.go_on()
    await stage.put(second := new_run())
    await stage.store.control(Command.RESUME, [paused.id])
    assert [run.id for run in (await stage.claim(free=2)).runs] == [paused.id, second.id]


async def test_a_run_whose_need_is_met_is_found(stage: Stage, turns: Turns) -> None:
    first = await stage.running()
    await stage.put(waiting := new_run(needs=(first.id,)))
    await turns.go_on()
    await stage.end(first, Succeeded())
    assert (await stage.take()).id == waiting.id


async def test_parked_runs_are_found_when_there_is_room(stage: Stage, turns: Turns) -> None:
    await stage.store.declare([TaskSpec("limited", limit=Limit(per_key=1))])
    parked = [new_run("limited", key="k") for _ in range(3)]
    await stage.put(*parked)
    for expected in parked:
        (run,) = (await stage.claim(free=3, tasks=["limited"])).runs
        assert run.id == expected.id
        await turns.go_on(task="limited")
        await stage.end(run, Succeeded())


async def test_a_lapsed_lease_is_offered(stage: Stage, turns: Turns) -> None:
    await stage.put(lost := new_run("other"))
    request = ClaimRequest("bob", 1, ["other"], 1, 5)
    assert [run.id for run in (await stage.store.claim(request)).runs] == [lost.id]
    await turns.go_on(4)
    turns.pass_seconds(2)
    lapsed = (await stage.claim(free=0)).lapsed
    assert [run.id for run in lapsed] == [lost.id]
    await stage.store.settle([settlement_of(run, Lost()) for run in lapsed])


async def test_an_expiry_in_the_past_ends_its_run(stage: Stage, turns: Turns) -> None:
    late = new_run(expires_at=await stage.now() - 60)
    await stage.put(late)
    await stage.claim()
    assert (await stage.see(late)).state is State.CANCELLED


@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
async def test_a_transaction_that_commits_late_leaves_its_run_in_its_lane(
    stage: Stage, turns: Turns, beside: asyncpg.Connection, postgres_backend: PostgresBackend, level: str
) -> None:
    backend = postgres_backend
    run, expiring = new_run(), new_run(expires_at=await stage.now() + 1)
    async with beside.transaction(isolation=level.replace(" ", "_")):
        for new in (run, expiring):
            await beside.execute(
                f"SELECT {backend.schema}.submit($1, $2, $3)", as_payload([new]), backend.skew, backend.seen
            )
        await turns.go_on()
        before = await floors(backend)
        await turns.go_on()
        assert (await floors(backend))[0] > before[0], "the open transaction keeps no floor where it was"
        turns.pass_seconds(1)
    assert [taken.id for taken in await claims(stage)] == [run.id]
    assert (await stage.see(expiring)).state is State.CANCELLED


async def claims(stage: Stage) -> list[Run]:
    return (await stage.claim(free=5)).runs


async def test_a_clock_that_was_hours_ahead_leaves_no_floor_behind(
    stage: Stage, turns: Turns, postgres_backend: PostgresBackend
) -> None:
    turns.pass_seconds(7200)
    await turns.go_on()
    postgres_backend.skew -= 7300
    postgres_backend.seen = 0.0
    run: NewRun = new_run()
    await stage.put(run)
    assert (await stage.take()).id == run.id


@pytest.fixture
async def held(postgres_backend: PostgresBackend) -> AsyncIterator[None]:
    """A transaction that lets VACUUM remove nothing."""
    connection = await asyncpg.connect(postgres_backend.address.dsn)
    async with connection.transaction(isolation="repeatable_read"):
        await connection.execute("SELECT txid_current()")
        yield
    await connection.close()


async def read_entries(backend: PostgresBackend) -> dict[str, int]:
    """What all connections of the store have read; a connection reports when it ends, so their ends are waited for."""
    connection = await asyncpg.connect(backend.address.dsn)
    while await connection.fetchval(OPEN, f"%{backend.address.schema}%"):
        pass
    rows = await connection.fetch(READ, backend.address.schema)
    await connection.close()
    return {row["name"]: row["read"] for row in rows}


async def analyze(backend: PostgresBackend) -> None:
    """Let the planner know what autovacuum tells it in time: most tables seem to be empty."""
    connection = await asyncpg.connect(backend.address.dsn)
    await connection.execute("ANALYZE")
    await connection.close()


async def test_a_run_costs_the_same_however_many_rows_are_dead(held: None, postgres_backend: PostgresBackend) -> None:
    """Counted in entries that are read from all indexes for 20 runs, each put, claimed and settled on its own."""

    numbers = count(1)

    async def use(runs: int) -> int:
        before = await read_entries(postgres_backend)
        async with postgres_backend.open() as store:
            for _ in range(runs):
                postgres_backend.skew += 1
                await store.put([new_run()])
                (run,) = (await store.claim(ClaimRequest("ada", next(numbers), ["greet"], 5, 30))).runs
                await store.settle([settlement_of(run, Succeeded())])
        after = await read_entries(postgres_backend)
        return sum(after.values()) - sum(before.values())

    few = await use(20)
    await use(400)
    await analyze(postgres_backend)
    many = await use(20)
    assert 0 < many < 1.2 * few, (few, many)


async def test_a_limited_run_costs_the_same_however_many_rows_are_dead(
    held: None, postgres_backend: PostgresBackend
) -> None:
    numbers = count(1)

    async def use(runs: int) -> int:
        before = await read_entries(postgres_backend)
        async with postgres_backend.open() as store:
            await store.declare([TaskSpec("greet", limit=Limit(5))])
            for _ in range(runs):
                postgres_backend.skew += 1
                await store.put([new_run()])
                (run,) = (await store.claim(ClaimRequest("ada", next(numbers), ["greet"], 5, 30))).runs
                await store.settle([settlement_of(run, Succeeded())])
        return sum((await read_entries(postgres_backend)).values()) - sum(before.values())

    few = await use(20)
    await use(400)
    await analyze(postgres_backend)
    many = await use(20)
    assert 0 < many < 1.2 * few, (few, many)


async def test_the_number_of_running_runs_is_that_of_the_leases(
    stage: Stage, beside: asyncpg.Connection, postgres_backend: PostgresBackend
) -> None:
    """Through claims, endings, releases and changes of the limit, in all and for each key."""
    latest = (
        "SELECT DISTINCT ON (task, key) substr(key, 2) AS key, n FROM running WHERE key <> ''"
        " ORDER BY task, key, version DESC"
    )
    counted = "SELECT key, count(*) AS n FROM leases GROUP BY key"
    await stage.declare(Limit(3, per_key=2))
    for place in range(12):
        await stage.put(*(new_run(key=key) for key in ("k", "l")))
        runs = (await stage.claim(free=4)).runs
        if place == 4:
            await stage.declare()
        if place == 6:
            await stage.declare(Limit(5, per_key=1))
        for run in runs[place % 2 :]:
            await stage.end(run, Released() if place % 3 else Succeeded())
        if place not in (4, 5):
            found = {row["key"]: row["n"] for row in await beside.fetch(latest) if row["n"]}
            assert found == {row["key"]: row["n"] for row in await beside.fetch(counted)}
            total = await beside.fetchval("SELECT n FROM running WHERE key = '' ORDER BY version DESC LIMIT 1")
            assert total == await beside.fetchval("SELECT count(*) FROM leases")


async def test_thousands_of_runs_come_back_with_few_locks(stage: Stage) -> None:
    """Each run was due at another time. The table of locks has room for some thousands, of all transactions."""
    now = await stage.now()
    await stage.declare(Limit(per_key=1))
    runs = [new_run(key="k", at=now - 10 * place) for place in range(1, 30_001)]
    for first in range(0, len(runs), 1000):
        await stage.put(*runs[first : first + 1000])
    assert [run.id for run in (await stage.claim(free=10)).runs] == [runs[-1].id]
    while (await stage.claim(free=10)).wake == 0:
        pass
    await stage.declare()
    taken = (await stage.claim(free=30_000)).runs
    assert [run.id for run in taken] == [run.id for run in reversed(runs[:-1])]
