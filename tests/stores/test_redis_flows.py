"""What steps and groups leave behind on the server: nothing, once those that waited have ended and are forgotten."""

from rota.domain import needs
from rota.domain.lifecycle import Succeeded
from rota.domain.run import Member, NewRun
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


def kept(server: RedisServer, namespace: str) -> set[str]:
    """What there is of waits and groups."""
    root = f"{{{namespace}}}"
    keys = server.send("KEYS", f"{root}*")
    assert isinstance(keys, list)
    names = {str(key).removeprefix(root) for key in keys}
    return {name for name in names if name.startswith(("awaits:", "g:", "grouped"))}


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
