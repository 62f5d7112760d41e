"""What is due and locked by somebody else is passed over by a claim, and looked for again soon."""

import asyncpg
import pytest

from rota.domain.policy import Limit
from rota.stores.postgres.columns import as_payload
from storekit.contract import Stage, new_run
from storekit.contract.stage import ids

FIRST_LOOK, LAST_LOOK = 0.02, 1.0


@pytest.mark.parametrize("way", ["one lane", "many lanes", "limited", "suspect"])
async def test_a_claim_that_passes_a_locked_run_over_looks_again_soon(
    stage: Stage, beside: asyncpg.Connection, way: str
) -> None:
    run, others = new_run(), [new_run(priority=5)] if way == "many lanes" else []
    if way == "limited":
        await stage.declare(Limit(5))
    if way == "suspect":
        (lost,) = await stage.suspects(run)
        assert lost.id == run.id
    else:
        await stage.put(run, *others)
    async with beside.transaction():
        await beside.execute("SELECT FROM queue WHERE id = $1 FOR UPDATE", run.id)
        claim = await stage.claim("ada", 5)
        assert ids(claim.runs) == ids(others)
        assert claim.wake is not None
        assert 0 < claim.wake <= LAST_LOOK
    again = await stage.claim("ada", 5)
    assert (ids(again.runs), again.wake) == ([run.id], None)


async def test_a_run_that_a_caller_waits_for_in_an_open_transaction_is_looked_for(
    stage: Stage, beside: asyncpg.Connection
) -> None:
    ahead = new_run()
    await stage.put(ahead)
    async with beside.transaction():
        await beside.execute("SELECT submit($1)", as_payload([new_run("later", needs=[ahead.id])]))
        claim = await stage.claim()
        assert claim.runs == []
        assert claim.wake == pytest.approx(FIRST_LOOK, abs=0.5)
    assert (await stage.take()).id == ahead.id


async def test_what_stays_locked_is_looked_for_less_and_less(stage: Stage, beside: asyncpg.Connection) -> None:
    run, wakes = new_run(), list[float]()
    await stage.put(run)
    async with beside.transaction():
        await beside.execute("SELECT FROM queue WHERE id = $1 FOR UPDATE", run.id)
        for _ in range(20):
            wakes.append((await stage.claim()).wake or 0.0)
            stage.wait(wakes[-1])
    assert wakes == sorted(wakes)
    assert wakes[-1] == pytest.approx(LAST_LOOK)


async def test_one_worker_looks_for_all(stage: Stage, beside: asyncpg.Connection) -> None:
    run = new_run()
    await stage.put(run)
    stage.wait(60)
    async with beside.transaction():
        await beside.execute("SELECT FROM queue WHERE id = $1 FOR UPDATE", run.id)
        ada, bob = await stage.claim("ada"), await stage.claim("bob")
    assert ada.wake == pytest.approx(LAST_LOOK)
    assert bob.wake is None or bob.now >= ada.now + LAST_LOOK


async def test_what_a_limit_holds_back_is_not_looked_for(stage: Stage, beside: asyncpg.Connection) -> None:
    await stage.declare(Limit(1))
    await stage.put(new_run(), new_run())
    claim = await stage.claim(free=2)
    assert (len(claim.runs), claim.wake) == (1, None)
