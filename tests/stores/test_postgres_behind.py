"""Runs that wait behind equal ones, while others put, claim and end those at the same time."""

import asyncio
from random import Random

import asyncpg
import pytest

from rota.domain.decision import Reason
from rota.domain.guards import Cooldown
from rota.domain.lifecycle import Discarded, Failed, Succeeded, settlement_of
from rota.domain.policy import Policy, Retry
from rota.domain.run import NewRun, State
from rota.domain.settlement import Verdict
from rota.errors import StoreCorrupt
from rota.store import ClaimRequest, RunQuery, Store
from rota.stores.postgres import PostgresBackend
from rota.stores.postgres.columns import as_payload
from storekit.contract import Stage, new_run
from storekit.contract.stage import BOOM

AT_ONCE = Policy(retry=Retry(1000, backoff="fixed", delay=0, jitter=0))
RULES = (Cooldown(0, 60), Cooldown(2, 3600, Reason.BREAKER))
CLAIM = (
    "SELECT FROM {schema}.claim('other', 0, 0, 'bob', 1, '{{greet}}', '{{}}', 1, 30, NULL, "
    "'{{}}', '{{}}', '{{}}', '{{}}')"
)


def behind(key: str = "k", cooldowns: tuple[Cooldown, ...] = (), policy: Policy = AT_ONCE) -> NewRun:
    return new_run(key=key, unique="queued", behind=True, cooldowns=cooldowns, policy=policy)


async def until_it_waits(connection: asyncpg.Connection) -> None:
    """Until some connection waits for a lock."""
    while not await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
        pass


@pytest.mark.parametrize("first", ["is there", "comes meanwhile"])
async def test_one_that_meets_a_claim_of_its_equal_waits_for_the_end_of_that(
    stage: Stage, beside: asyncpg.Connection, postgres_backend: PostgresBackend, first: str
) -> None:
    ahead, second = behind(), behind(cooldowns=RULES)
    schema = postgres_backend.schema
    if first == "is there":
        await stage.put(ahead)
    async with beside.transaction():
        if first == "comes meanwhile":
            await beside.execute(f"SELECT {schema}.submit($1)", as_payload([ahead]))
            await beside.execute(f"SET CONSTRAINTS {schema}.place_at_commit IMMEDIATE")  # as if it had committed
        await beside.execute(CLAIM.format(schema=schema))
        put = asyncio.create_task(stage.put(second))
        await until_it_waits(beside)
    await put
    waits = await stage.see(second)
    assert (waits.needs, waits.cooldowns) == ((ahead.id,), RULES)
    assert (await stage.claim()).runs == []
    held = await stage.see(ahead)
    assert held.awaited is True
    await stage.end(held, Succeeded())
    assert (await stage.see(second)).needs == ()


async def test_one_that_meets_the_end_of_its_equal_waits_for_nobody(
    stage: Stage, beside: asyncpg.Connection, postgres_backend: PostgresBackend
) -> None:
    run = await stage.running(behind())
    async with beside.transaction():
        await beside.execute(f"DELETE FROM {postgres_backend.schema}.leases WHERE id = $1", run.id)
        put = asyncio.create_task(stage.put(second := behind()))
        await until_it_waits(beside)
    await put
    assert (await stage.see(second)).needs == ()


async def test_it_waits_behind_in_a_transaction_of_the_caller_as_well(
    stage: Stage, beside: asyncpg.Connection, postgres_backend: PostgresBackend
) -> None:
    run, second = await stage.running(behind(cooldowns=RULES)), behind(cooldowns=RULES)
    await beside.execute(f"SELECT {postgres_backend.schema}.submit($1)", as_payload([second]))
    assert (await stage.see(second)).needs == (run.id,)
    await stage.end(run, Discarded(BOOM))
    assert (await stage.see(second)).due_at == ((await stage.see(run)).finished_at or 0.0) + 60


async def test_a_broken_row_that_an_ending_meets_is_no_proof_against_the_ending(
    stage: Stage, beside: asyncpg.Connection, postgres_backend: PostgresBackend
) -> None:
    """The run that waits has rules that are no JSON any more: the one ahead has succeeded all the same."""
    run, second = await stage.running(behind(cooldowns=RULES)), behind(cooldowns=RULES)
    await stage.put(second)
    good = await beside.fetchval(f"SELECT cooldowns FROM {postgres_backend.schema}.queue WHERE id = $1", second.id)
    change = f"UPDATE {postgres_backend.schema}.queue SET cooldowns = $1 WHERE id = $2"
    await beside.execute(change, "[{", second.id)
    with pytest.raises(StoreCorrupt, match="in the call or in a row"):
        await stage.store.settle([settlement_of(run, Succeeded())])
    await beside.execute(change, good, second.id)
    assert (await stage.store.settle([settlement_of(run, Succeeded())])).items == [Verdict.APPLIED]


async def test_a_big_batch_waits_behind_what_runs(stage: Stage) -> None:
    keys = [f"k{place}" for place in range(40)]
    await stage.put(*(behind(key) for key in keys))
    running = (await stage.claim(free=30)).runs
    batch = [behind(key) for key in keys]
    decisions = (await stage.store.put(batch)).items
    assert [decision.reason for decision in decisions] == [Reason.ACCEPTED] * 30 + [Reason.JOINED] * 10
    assert [run.needs for run in await stage.find(*batch[:30])] == [(run.id,) for run in running]


async def test_the_rules_stay_with_a_run_to_its_end(stage: Stage) -> None:
    first = await stage.running(behind(cooldowns=RULES))
    assert first.cooldowns == ()
    await stage.put(second := behind(cooldowns=RULES, policy=Policy(retry=Retry(1, backoff="fixed", delay=5))))
    await stage.end(first, Succeeded())
    waits = await stage.see(second)
    assert (waits.cooldowns, waits.due_at) == (RULES, ((await stage.see(first)).finished_at or 0.0) + 60)
    stage.wait(61)
    run = await stage.take()
    assert run.cooldowns == RULES
    await stage.end(run, Failed(BOOM))
    again = await stage.see(second)
    assert (again.state, again.cooldowns) == (State.QUEUED, RULES)
    assert await stage.cancel(again)
    assert (await stage.see(second)).cooldowns == RULES


async def test_the_mark_counts_that_is_there_when_the_last_need_has_ended(stage: Stage) -> None:
    """A paused one is judged as well, and one of two ends judges nothing."""
    run, other = await stage.running(behind(cooldowns=RULES)), new_run("elsewhere")
    second = new_run(key="k", unique="queued", behind=True, cooldowns=RULES, needs=[other.id])
    await stage.put(other, second)
    due_at = (await stage.see(second)).due_at
    assert await stage.pause(second)
    await stage.end(run, Succeeded())
    waits = await stage.see(second)
    assert (waits.needs, waits.due_at) == ((other.id,), due_at)
    stage.wait(30)
    await stage.cancel(other)
    free = await stage.see(second)
    finished_at = (await stage.see(run)).finished_at or 0.0
    assert (free.state, free.needs, free.due_at) == (State.PAUSED, (), finished_at + 60)


class Crowd:
    """Some who put runs behind equal ones and some who work: of each key at most one runs at a time."""

    def __init__(self, seed: int, store: Store) -> None:
        self.chance = Random(seed)
        self.store = store
        self.running: set[str] = set()
        self.putting = 3

    async def put(self) -> None:
        for _ in range(60):
            await self.store.put([behind(f"k{self.chance.randrange(3)}") for _ in range(self.chance.randint(1, 3))])
        self.putting -= 1

    async def work(self, name: str) -> None:
        n, found = 0, True
        while self.putting or found:
            n += 1
            runs = (await self.store.claim(ClaimRequest(name, n, ["greet"], 2, 30))).runs
            found = bool(runs)
            for run in runs:
                assert run.key not in self.running
                self.running.add(run.key or "")
            for run in runs:
                await self.store.renew([run.lease], 30)
                self.running.discard(run.key or "")
                outcome = Failed(BOOM) if self.chance.random() < 0.3 else Succeeded()
                await self.store.settle([settlement_of(run, outcome)])


@pytest.mark.parametrize("seed", range(3))
async def test_equal_ones_never_run_together_and_nobody_waits_for_ever(
    postgres_backend: PostgresBackend, seed: int
) -> None:
    async with postgres_backend.open() as near, postgres_backend.open() as far:
        crowd = Crowd(seed, near)
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(crowd.put())
            for name in ("ada", "bob", "eve"):
                group.create_task(crowd.work(name))
        last = Stage(postgres_backend, far)
        while runs := (await last.claim("last", free=9)).runs:
            for run in runs:
                await last.end(run, Succeeded())
        assert (await far.depths()).items == []
        ended = (await far.runs(RunQuery(limit=10_000))).runs
        assert {run.state for run in ended} <= {State.SUCCEEDED, State.CANCELLED}
        assert {run.reason for run in ended if run.state is State.CANCELLED} <= {Reason.SUPERSEDED}
