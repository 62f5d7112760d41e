"""Steps that wait by name, while others put, end and plan them at the same time; and what they leave behind."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from rota.domain import needs
from rota.domain.guards import Mark
from rota.domain.lifecycle import Discarded, Succeeded, settlement_of
from rota.domain.policy import Limit
from rota.domain.run import Member, NewRun, Run, State
from rota.domain.settlement import Settlement
from rota.store import MarkRow, Plan, Retention, RunQuery
from rota.stores.postgres import PostgresBackend, columns
from rota.stores.postgres.driver import placeholders
from storekit.contract import Stage, new_run
from storekit.contract.stage import BOOM, GREET, ids

DAY = "day@1"
FAR = 2_000_000_000.0


def step(name: str, *after: str, group: str = DAY, stops: bool = False, at: float | None = None) -> NewRun:
    wanted = [needs.done(GREET, parent) for parent in after]
    return new_run(key=name, unique="done", join="set", needs=wanted, member=Member(group, name, stops), at=at)


class Beside:
    """A connection beside the store's own: verbs in a transaction that stays open."""

    def __init__(self, connection: asyncpg.Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self.transaction = connection.transaction

    async def put(self, *runs: NewRun, plan: Plan | None = None) -> None:
        await self._verb("put", *columns.of_put(runs, plan))

    async def submit(self, *runs: NewRun) -> None:
        await self._connection.execute(f"SELECT {self._schema}.submit($1)", columns.as_payload(runs))

    async def settle(self, *said: Settlement) -> None:
        await self._verb("settle", *columns.of_settlements(said))

    async def mark(self, *edits: MarkRow) -> None:
        await self._verb("mark", *columns.of_marks(edits))

    async def count(self, table: str) -> int:
        found: Any = await self._connection.fetchval(f"SELECT count(*) FROM {self._schema}.{table}")
        return int(found)

    async def until_it_waits(self, task: asyncio.Task[Any]) -> None:
        """Until some connection waits for a lock, or the task has not waited at all."""
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        while not task.done() and not await self._connection.fetchval(waiting):
            pass
        assert not task.done()

    async def _verb(self, name: str, *said: Any) -> None:
        args = ("beside", 0.0, 0.0, *said)
        await self._connection.fetch(f"SELECT * FROM {self._schema}.{name}({placeholders(len(args))})", *args)


@pytest.fixture
async def besides(stage: Stage, postgres_backend: PostgresBackend) -> AsyncIterator[list[Beside]]:
    connections = [await asyncpg.connect(postgres_backend.address.dsn) for _ in range(2)]
    yield [Beside(connection, postgres_backend.schema) for connection in connections]
    for connection in connections:
        await connection.close()


@pytest.fixture
def beside(besides: list[Beside]) -> Beside:
    return besides[0]


async def released(stage: Stage, child: NewRun) -> None:
    run = await stage.take()
    assert (run.id, run.needs) == (child.id, ())


@pytest.mark.parametrize("way", ["put", "submit"])
async def test_an_end_waits_for_the_child_that_is_coming_in(stage: Stage, beside: Beside, way: str) -> None:
    parent, child = await stage.running(step("one")), step("two", "one")
    async with beside.transaction():
        await (beside.put(child) if way == "put" else beside.submit(child))
        end = asyncio.create_task(stage.end(parent, Succeeded()))
        await beside.until_it_waits(end)
    await end
    await released(stage, child)


async def test_a_mark_waits_for_the_child_that_is_coming_in(stage: Stage, beside: Beside) -> None:
    child = step("two", "one")
    async with beside.transaction():
        await beside.put(child)
        mark = asyncio.create_task(stage.store.mark([MarkRow(GREET, "one", Mark(1.0, 1.0, 0))]))
        await beside.until_it_waits(mark)
    await mark
    await released(stage, child)


@pytest.mark.parametrize("joins", [False, True])
async def test_a_child_that_comes_in_waits_for_the_end_of_its_parent(stage: Stage, beside: Beside, joins: bool) -> None:
    parent, child = await stage.running(step("one")), step("two", "one")
    if joins:
        await stage.put(child := step("two", "never"))
    async with beside.transaction():
        await beside.settle(settlement_of(parent, Succeeded()))
        put = asyncio.create_task(stage.admit(step("two", "one") if joins else child))
        await beside.until_it_waits(put)
    await put
    await released(stage, child)


async def test_a_child_that_comes_in_waits_for_the_mark(stage: Stage, beside: Beside) -> None:
    async with beside.transaction():
        await beside.mark(MarkRow(GREET, "one", Mark(1.0, 1.0, 0)))
        put = asyncio.create_task(stage.put(child := step("two", "one")))
        await beside.until_it_waits(put)
    await put
    await released(stage, child)


async def test_ends_do_not_wait_for_each_other(stage: Stage, beside: Beside) -> None:
    await stage.put(step("one"), step("two"))
    one, two = (await stage.claim(free=2)).runs
    async with beside.transaction():
        await beside.settle(settlement_of(one, Succeeded()))
        await stage.end(two, Succeeded())
    assert {run.state for run in await stage.find(one, two)} == {State.SUCCEEDED}


async def test_of_two_plans_at_once_the_later_one_holds(stage: Stage, beside: Beside) -> None:
    first, second = step("r1", at=FAR), step("r2", at=FAR)
    async with beside.transaction():
        await beside.put(first, plan=Plan(DAY))
        put = asyncio.create_task(stage.store.put([second], Plan(DAY)))
        await beside.until_it_waits(put)
    await put
    states = [run.state for run in await stage.find(first, second)]
    assert states == [State.CANCELLED, State.QUEUED]


async def test_batches_that_let_the_same_ones_go_meet_in_no_ring(stage: Stage, besides: list[Beside]) -> None:
    """Each child waits for one of both batches, which end them in opposite orders."""
    near, far = besides
    for turn in range(10):
        names = [f"{turn}-{place}" for place in range(30)]
        await stage.put(*(step(f"{name}{side}") for name in names for side in "ab"))
        await stage.put(*(step(name, f"{name}a", f"{name}b") for name in names))
        running = {run.key: run for run in (await stage.claim(free=100)).runs}
        ones = [settlement_of(running[f"{name}a"], Succeeded()) for name in names]
        others = [settlement_of(running[f"{name}b"], Succeeded()) for name in reversed(names)]
        await asyncio.gather(near.settle(*ones), far.settle(*others))
        started = (await stage.claim(free=100)).runs
        assert sorted(run.key or "" for run in started) == sorted(names)
        await end_all(stage, started)


async def end_all(stage: Stage, runs: list[Run]) -> None:
    await stage.store.settle([settlement_of(run, Succeeded()) for run in runs])


async def test_nothing_is_left_of_waits_and_groups(stage: Stage, beside: Beside) -> None:
    await stage.put(one := step("one"), two := step("two", "one"), three := step("three", "one", "never"))
    await stage.put(lone := new_run("elsewhere"), new_run("elsewhere", needs=[lone.id]))
    await stage.admit(step("two", "other"))
    assert (await beside.count("waits"), await beside.count("grouped")) == (4, 3)
    await stage.end(await stage.take(), Succeeded())
    await stage.cancel(two)
    await stage.cancel(lone)
    assert await beside.count("waits") == 1
    await stage.store.put([], Plan(DAY))
    assert await beside.count("waits") == 0
    assert {run.state for run in await stage.find(two, three)} == {State.CANCELLED}
    stage.wait(120)
    await stage.store.sweep(Retention(succeeded=0.0, failed=0.0, least=0))
    assert await stage.find(one, two, three) == []
    assert await beside.count("grouped") == 0


async def test_a_group_comes_in_with_a_transaction_of_the_caller(stage: Stage, beside: Beside) -> None:
    await beside.submit(step("one"), two := step("two", "one"))
    assert (await stage.see(two)).needs == (needs.done(GREET, "one"),)
    assert len((await stage.store.runs(RunQuery(group=DAY))).runs) == 2


async def test_a_stop_makes_room_for_others_of_a_limited_task(stage: Stage) -> None:
    """What is stopped stood ready for a saturated key; the next of that key, of another group, starts."""
    await stage.declare(Limit(per_key=1), task="limited")
    ready = new_run("limited", key="k", member=Member(DAY))
    await stage.put(step("one", stops=True), ready)
    parent = await stage.take()
    await stage.put(parked := new_run("limited", key="k"))
    assert ids((await stage.claim("bob", 9, tasks=["limited"])).runs) == [ready.id]
    await stage.put(second := new_run("limited", key="k", member=Member(DAY)))
    assert (await stage.claim("eve", 9, tasks=["limited"])).runs == []
    await stage.end(parent, Discarded(BOOM))
    assert [run.state for run in await stage.find(second, parked)] == [State.CANCELLED, State.QUEUED]
    await stage.end(await stage.see(ready), Succeeded())
    assert ids((await stage.claim("eve", 9, tasks=["limited"])).runs) == [parked.id]
