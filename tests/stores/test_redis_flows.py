"""What steps and groups leave behind on the server: nothing, once those that waited have ended and are forgotten."""

from rota.domain import needs
from rota.domain.lifecycle import Succeeded
from rota.domain.run import Member, NewRun, Run
from rota.store import Plan, Retention, RunQuery
from storekit.contract import Stage, new_run
from storekit.contract.stage import GREET
from storekit.servers import RedisServer
from tests.stores.redis_stages import at, staged

DAY = "day@1"
NOTHING = Retention(succeeded=0.0, failed=0.0, least=0)


def step(name: str, *after: str) -> NewRun:
    wanted = [spell(GREET, parent) for parent in after for spell in (needs.done, needs.ended)]
    return new_run(key=name, unique="done", needs=wanted, member=Member(DAY, name), expires_after=3600.0)


def names_of(server: RedisServer, namespace: str) -> set[str]:
    """All keys of the namespace, without its name."""
    root = f"{{{namespace}}}"
    keys = server.send("KEYS", f"{root}*")
    assert isinstance(keys, list)
    return {str(key).removeprefix(root) for key in keys}


def kept(server: RedisServer, namespace: str) -> set[str]:
    """What there is of waits and groups."""
    return {name for name in names_of(server, namespace) if name.startswith(("awaits:", "g:", "grouped"))}


async def swept(stage: Stage) -> None:
    stage.wait(120)
    await stage.store.sweep(NOTHING)
    assert (await stage.store.runs(RunQuery())).runs == []


async def test_waits_go_with_whatever_ends_them(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        await stage.put(step("one"), two := step("two", "one"), step("three", "never"), lone := new_run("elsewhere"))
        await stage.put(new_run("elsewhere", needs=[lone.id]))
        assert len(kept(valkey, namespace)) == 7
        await stage.admit(step("two", "other"))
        assert f"awaits:{needs.done(GREET, 'one')}" not in kept(valkey, namespace)
        await stage.end(await stage.take(), Succeeded())
        await stage.cancel(two)
        await stage.cancel(lone)
        stage.wait(4000)
        assert (await stage.store.sweep(Retention())).expired == 1
        assert kept(valkey, namespace) == {f"g:{DAY}", "grouped"}


async def test_a_group_is_forgotten_with_its_runs(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        await stage.put(step("one"), step("two"), new_run(key="lone"))
        await stage.store.put([], Plan(DAY))
        assert kept(valkey, namespace) == {f"g:{DAY}", "grouped"}
        await stage.end(await stage.take(), Succeeded())
        await swept(stage)
        assert kept(valkey, namespace) == set()


MANY = 450
"""More than one script lets start."""


async def many_that_wait(stage: Stage) -> tuple[Run, list[NewRun]]:
    """A running run, and many that wait for its end."""
    run = await stage.running(new_run())
    waiting = [new_run(id=f"{run.id}-{n:03}", needs=[run.id]) for n in range(MANY)]
    await stage.put(*waiting)
    return run, waiting


def released(server: RedisServer, namespace: str) -> bool:
    """Is nothing left of runs whose needs are met?"""
    return not [name for name in names_of(server, namespace) if name.startswith(("met:", "releas"))]


async def test_many_runs_that_waited_for_one_end_start_in_their_order(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        run, waiting = await many_that_wait(stage)
        await stage.end(run, Succeeded())
        started: list[str] = []
        while len(started) < MANY:
            claim = await stage.claim("ada", 60)
            assert claim.runs, "each claim lets more of them start than it takes"
            started += [one.id for one in claim.runs]
        assert started == [new.id for new in waiting]
        assert released(valkey, namespace)


async def test_a_claim_that_lets_some_start_comes_back_for_the_others(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        run, waiting = await many_that_wait(stage)
        async with stage.listening() as ear:
            await stage.claim("bob", tasks=["other"])
            await stage.end(run, Succeeded())
            assert "bob" in await ear.workers(), "somebody claims, also if no worker takes these runs"
        assert (await stage.claim("bob", tasks=["other"])).wake == 0.0, "and again"
        assert not released(valkey, namespace)
        assert (await stage.claim("bob", tasks=["other"])).wake != 0.0
        assert released(valkey, namespace)
        assert [one.id for one in (await stage.claim("ada", 500)).runs] == [new.id for new in waiting]


async def test_a_sweep_goes_on_where_no_worker_claims(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        run, waiting = await many_that_wait(stage)
        await stage.cancel(waiting[-1])
        await stage.end(run, Succeeded())
        assert await stage.cancel(waiting[-2]), "it can be cancelled while it is still held"
        swept = 1
        while (await stage.store.sweep(Retention())).more:
            swept += 1
        assert swept == 2
        assert released(valkey, namespace)
        assert [one.id for one in (await stage.claim("ada", 500)).runs] == [new.id for new in waiting[:-2]]
