"""Dead rows cost nothing: each way of using the store costs the same however many rows are dead, while one open
transaction lets VACUUM remove none of them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count

import asyncpg
import pytest

from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.policy import Limit, Rate
from rota.domain.run import State
from rota.domain.spec import TaskSpec
from rota.store import ClaimRequest, Report, RunQuery, Store, Tally
from rota.stores.postgres import PostgresBackend
from storekit.contract import new_run
from storekit.contract.timetable import new_schedule, new_tick
from storekit.servers import PostgresServer

OPEN = "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE $1"
READ = "SELECT indexrelname AS name, idx_tup_read AS read FROM pg_stat_user_indexes WHERE schemaname = $1"

Use = Callable[[Store, int], Awaitable[None]]


async def plain(store: Store, n: int) -> None:
    await store.put([new_run()])
    await _run(store, n)


async def handed(store: Store, n: int) -> None:
    assert store.hands_over is not None
    async with store.changes():
        await store.hands_over.claim_ready(ClaimRequest("ada", n, ["greet"], 1, 30), "token", None)
        await store.put([new := new_run()])
        (run,) = (await store.runs(RunQuery(ids=(new.id,)))).runs
        assert run.state is State.RUNNING
        await store.settle([settlement_of(run, Succeeded())])


async def _run(store: Store, n: int, report: Report | None = None) -> None:
    (run,) = (await store.claim(ClaimRequest("ada", n, ["greet"], 5, 30, report))).runs
    await store.settle([settlement_of(run, Succeeded())])


async def reported(store: Store, n: int) -> None:
    await store.put([new_run()])
    await _run(store, n, Report(tallies=(Tally("greet", succeeded=1, waits={1: 1}, durations={1: 1}),)))


async def limited(store: Store, n: int) -> None:
    await store.declare([TaskSpec("greet", limit=Limit(5, per_key=2))])
    await store.put([new_run(key="k")])
    await _run(store, n)


async def rated(store: Store, n: int) -> None:
    await store.declare([TaskSpec("greet", rate=Rate(10, 1.0, per_key=True))])
    await store.put([new_run(key="k")])
    await _run(store, n)


async def opened(store: Store, n: int) -> None:
    """Two runs of a key, of which the second is parked until the rate of the key has a token again."""
    await store.declare([TaskSpec("greet", rate=Rate(1, 1.0, per_key=True))])
    await store.put([new_run(key=f"k{n}"), new_run(key=f"k{n}")])
    for run in (await store.claim(ClaimRequest("ada", n, ["greet"], 5, 30))).runs:
        await store.settle([settlement_of(run, Succeeded())])


async def refused(store: Store, n: int) -> None:
    await store.put([new_run(), new_run(max_pending=1)])
    await _run(store, n)


async def fired(store: Store, n: int) -> None:
    (schedule,) = (await store.claim(ClaimRequest("ada", n, ["other"], 5, 30))).schedules
    await store.fire([new_tick(schedule, then=(schedule.next_at or 0) + 1)])


@pytest.fixture
async def backend(postgres: PostgresServer, namespace: str) -> AsyncIterator[PostgresBackend]:
    backend = PostgresBackend.from_url(f"{postgres.url}&schema={namespace}")
    await backend.migrate()
    connection = await asyncpg.connect(postgres.url)
    beside = await asyncpg.connect(postgres.url)
    async with beside.transaction(isolation="repeatable_read"):
        await beside.execute("SELECT txid_current()")
        yield backend
    await connection.execute(f"DROP SCHEMA {namespace} CASCADE")
    await connection.close()
    await beside.close()


async def read_entries(backend: PostgresBackend) -> dict[str, int]:
    """What all connections of the store have read; a connection reports when it ends, so their ends are waited for."""
    connection = await asyncpg.connect(backend.address.dsn)
    while await connection.fetchval(OPEN, f"%{backend.address.schema}%"):
        pass
    rows = await connection.fetch(READ, backend.address.schema)
    await connection.execute("ANALYZE")  # autovacuum does so in time: most tables seem to be empty
    await connection.close()
    return {row["name"]: row["read"] for row in rows}


@pytest.mark.parametrize("use", [plain, handed, reported, limited, rated, opened, refused, fired])
async def test_a_use_costs_the_same_however_many_rows_are_dead(use: Use, backend: PostgresBackend) -> None:
    numbers = count(1)

    async def used(times: int) -> dict[str, int]:
        before = await read_entries(backend)
        async with backend.open() as store:
            if use is fired:
                now = (await store.depths()).now
                await store.declare([new_schedule("report", now)])
            for _ in range(times):
                backend.skew += 1
                await use(store, next(numbers))
        after = await read_entries(backend)
        return {name: after[name] - before.get(name, 0) for name in after}

    await used(40)  # leases are over after 30 turns
    few = await used(20)
    await used(300)
    many = await used(20)
    grown = {name: (few[name], many[name]) for name in many if many[name] > 1.2 * few[name] + 20}
    assert not grown, grown
