"""A put and a claim that run at the same time do not see each other: `missed` finds what that claim would have had."""

import asyncpg

from rota.domain.policy import Limit, Rate
from rota.store import Command, Scope
from rota.stores.postgres.columns import as_payload, of_bare
from rota.stores.postgres.driver import placeholders
from storekit.contract import Stage, new_run
from storekit.contract.stage import GREET


async def missed(beside: asyncpg.Connection, *names: str) -> list[str]:
    return await beside.fetchval("SELECT missed('me', 0, 0, $1)", names) or []


async def test_however_much_came_in_behind_it(stage: Stage, beside: asyncpg.Connection) -> None:
    late = [new_run("other", delay=3600) for _ in range(200)]
    async with beside.transaction():
        await beside.execute("SELECT submit($1)", as_payload([new_run(), *late]))
        assert (await stage.claim("ada")).runs == []
        assert (await stage.claim("bob", tasks=["other"])).runs == []
    assert await missed(beside, "ada", "bob") == ["ada"]
    assert await missed(beside, "ada") == [], "it was called already"


async def test_one_who_was_called_does_not_take_it_all(stage: Stage, beside: asyncpg.Connection) -> None:
    assert (await stage.claim("ada")).runs == []
    said = ("other", 0.0, 0.0, *(of_bare([new_run(), new_run()]) or ()))
    async with beside.transaction():
        assert await beside.fetchval(f"SELECT hinted FROM put_bare({placeholders(len(said))})", *said) == ["ada"]
        assert (await stage.claim("bob")).runs == []
    assert await missed(beside, "bob") == ["bob"]


async def test_those_who_were_called_are_waited_for(stage: Stage, beside: asyncpg.Connection) -> None:
    for worker in ("ada", "bob", "cyd"):
        assert (await stage.claim(worker)).runs == []
    await stage.put(new_run(), new_run(priority=5))
    names = ("ada", "bob", "cyd")
    assert await missed(beside, *names) == []
    assert len((await stage.claim("ada")).runs) == 1
    assert await missed(beside, *names) == [], "one of the two has come"


async def test_nothing_is_missed_that_may_not_start(stage: Stage, beside: asyncpg.Connection) -> None:
    assert await missed(beside, "ada") == []
    await stage.put(
        new_run("off"), new_run("full"), new_run("full"), new_run("slow"), new_run("slow"), new_run(delay=60)
    )
    await stage.store.control(Command.PAUSE, ["off"], of=Scope.TASKS)
    await stage.declare(Limit(1), task="full")
    await stage.declare(rate=Rate(1, 3600), task="slow")
    claim = await stage.claim("ada", 5, tasks=["off", "full", "slow", GREET])
    assert sorted(run.task for run in claim.runs) == ["full", "slow"]
    assert await missed(beside, "ada") == []
