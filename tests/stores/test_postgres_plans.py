"""Plans that are made with the statistics of an empty store stay look-ups when the store is full.

A join whose plan walks a whole table for each row of a batch shows in the plan as rows that the join removes. A walk
over a whole index, dead rows included, shows as an index scan without a condition.
"""

import asyncio
import re
from collections.abc import Generator

import asyncpg
import pytest

from rota.domain.guards import Guards
from rota.domain.lifecycle import Succeeded, settlement_of
from rota.domain.run import Run
from rota.domain.schedule import Schedule
from rota.domain.tuning import Retention
from rota.store import ClaimRequest, DueCount, EventQuery, RowQuery, Store
from rota.stores import connect
from storekit.contract.stage import new_run
from storekit.contract.timetable import new_schedule, new_tick
from storekit.servers.binaries import postgres_of_wheel
from storekit.servers.postgres import PostgresServer

SHOWN = {
    "autovacuum": "off",  # so that the statistics stay those of the empty store
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_parameter_max_length": "0",
}
MANY = 500
FEW = 20 * MANY
"""Rows that one statement may read in vain. A walk over the table for each row of a batch reads MANY * MANY."""

SCAN = re.compile(
    r"^\t(?P<indent> *)(?:->  )?Index (?:Only )?Scan(?: Backward)? using \S+ on (?P<table>\S+).*\n"
    r"(?P<details>(?:\t(?P=indent) {2,}(?!->).*\n)*)",
    re.M,
)


@pytest.fixture(scope="module")
def shown() -> Generator[PostgresServer]:
    with PostgresServer(postgres_of_wheel(), SHOWN) as server:
        yield server


async def use(store: Store, count: int) -> None:
    """Put, fire, claim and settle batches of guarded runs, and runs that wait for a group."""
    now = (await store.depths()).now
    await store.declare([new_schedule(f"s{place:04}", now, guards=Guards("active")) for place in range(count)])
    for _ in range(2):
        kept = (await store.rows(Schedule)).items
        ticks = [new_tick(one, new_run(key=one.key, unique="active", join="refuse")) for one in kept]
        await store.fire(ticks)
    await store.put([new_run(key=f"k{place}", unique="active") for place in range(count)])
    await store.put([new_run(key=f"k{place}", unique="active", join="set") for place in range(count)])
    done = [new_run(key=f"d{place}", unique="done") for place in range(count)]
    await store.put(done)
    await store.put([new_run(key=f"w{place}", needs=(run.id,)) for place, run in enumerate(done)])
    claimed: list[Run] = []
    for number in range(1, 5):
        claimed += (await store.claim(ClaimRequest("ada", number, ["greet"], count, 30))).runs
    await store.settle([settlement_of(run, Succeeded()) for run in claimed])
    await store.put([new_run(key=f"d{place}", unique="done") for place in range(count)])


async def shown_plans(server: PostgresServer) -> list[str]:
    """The plans of all statements of the verbs."""
    async with connect(server.url).open() as store:
        await store.events(EventQuery())  # so that all verbs record events
        await use(store, 1)
        connection = await asyncpg.connect(server.url)
        await connection.execute("ANALYZE")
        await connection.close()
        before = len(server.log)
        await use(store, MANY)
        await store.sweep(Retention())
        await store.events(EventQuery())
        for query in (RowQuery(), RowQuery(task="greet")):
            await store.rows(DueCount, query)
        await store.stats()
    return server.log[before:].split("LOG:  duration:")


@pytest.fixture(scope="module")
def plans(shown: PostgresServer) -> list[str]:
    found = asyncio.run(shown_plans(shown))
    assert len(found) > 100, "auto_explain shows the plans"
    return found


def test_no_verb_walks_a_table_for_each_row_of_a_batch(plans: list[str]) -> None:
    removed = {
        plan: max(map(int, re.findall(r"Rows Removed by (?:Join )?Filter: (\d+)", plan)), default=0) for plan in plans
    }
    worst = max(plans, key=removed.__getitem__)
    assert removed[worst] <= FEW, worst[:2000]


@pytest.mark.parametrize("table", ["queue", "leases", "floors", "worker_states", "events"])
def test_no_verb_walks_a_whole_index_of_a_table_with_dead_rows(plans: list[str], table: str) -> None:
    scans = [(plan, scan) for plan in plans for scan in SCAN.finditer(plan) if scan["table"] == table]
    walks = [plan for plan, scan in scans if "Index Cond" not in scan["details"]]
    assert scans
    assert not walks, walks[0][:2000]


def test_no_statement_asks_for_the_time_of_each_row(plans: list[str]) -> None:
    assert sum("min(due_at)" in plan for plan in plans) == 2
    slow = [plan for plan in plans if re.search(r"(?:Filter|Cond): .*now_of", plan)]
    assert not slow, slow[0][:2000]
