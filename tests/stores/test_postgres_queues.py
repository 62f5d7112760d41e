"""The queues that a task has used are forgotten when no run is in them, and no run is lost by that."""

import asyncpg
import pytest

from rota.domain.lifecycle import Released, Succeeded
from rota.domain.policy import Limit
from rota.store import Retention
from rota.stores.bounds import QUEUES_KEPT
from rota.stores.postgres import PostgresBackend
from rota.stores.postgres.columns import as_payload
from storekit.contract import Stage, new_run
from storekit.contract.stage import GREET, ids

MANY = QUEUES_KEPT + 20


async def queues(backend: PostgresBackend) -> set[str]:
    connection = await asyncpg.connect(backend.address.dsn)
    rows = await connection.fetch(f"SELECT task, queue FROM {backend.schema}.task_queues")
    await connection.close()
    assert all(row["task"] == GREET for row in rows)
    return {row["queue"] for row in rows}


async def use(stage: Stage, count: int) -> None:
    """A run in each of many queues comes and ends."""
    await stage.put(*(new_run(queue=f"q{place}") for place in range(count)))
    for run in (await stage.claim(free=count)).runs:
        await stage.end(run, Succeeded())


async def sweep(stage: Stage) -> None:
    await stage.store.sweep(Retention())


async def test_queues_without_runs_are_forgotten_when_there_are_many(
    stage: Stage, postgres_backend: PostgresBackend
) -> None:
    await use(stage, QUEUES_KEPT)
    await sweep(stage)
    assert len(await queues(postgres_backend)) == QUEUES_KEPT, "few queues cost a claim little"
    await use(stage, MANY)
    await sweep(stage)
    assert await queues(postgres_backend) == set()
    await stage.put(new := new_run(queue="q7"))
    assert ids((await stage.claim()).runs) == [new.id]


async def test_a_queue_is_kept_wherever_its_run_is(stage: Stage, postgres_backend: PostgresBackend) -> None:
    await use(stage, MANY)
    leased, parked, paused = (new_run(queue=f"q{place}", key="k") for place in range(3))
    await stage.declare(Limit(per_key=1))
    await stage.put(leased)
    (taken,) = (await stage.claim()).runs
    await stage.put(parked, paused, new_run(queue="q3", delay=60), new_run(queue="q4", needs=(leased.id,)))
    await stage.pause(paused)
    assert (await stage.claim(free=5)).runs == []
    await sweep(stage)
    assert await queues(postgres_backend) == {"q0", "q1", "q2", "q3", "q4"}
    await stage.end(taken, Released())
    assert ids((await stage.claim()).runs) == [leased.id], "a worker of all queues finds it again"


@pytest.mark.parametrize("level", ["read_committed", "repeatable_read"])
async def test_a_transaction_that_commits_late_loses_no_queue(
    stage: Stage, beside: asyncpg.Connection, postgres_backend: PostgresBackend, level: str
) -> None:
    backend, run = postgres_backend, new_run(queue="q7")
    await use(stage, MANY)
    async with beside.transaction(isolation=level):
        await beside.fetch(f"SELECT FROM {backend.schema}.task_queues")
        if level == "repeatable_read":  # it goes on seeing the rows that the sweep removes
            await sweep(stage)
            assert await queues(backend) == set()
        await beside.execute(
            f"SELECT {backend.schema}.submit($1, $2, $3)", as_payload([run]), backend.skew, backend.seen
        )
        await sweep(stage)
        assert level == "repeatable_read" or len(await queues(backend)) == MANY, "the put relies on its row"
    await sweep(stage)
    assert await queues(backend) == {"q7"}
    assert ids((await stage.claim()).runs) == [run.id]
