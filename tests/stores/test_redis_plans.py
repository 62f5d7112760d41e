"""Long plans on Redis: many short scripts, which come together for everybody."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from rota.domain.decision import Decision, Reason
from rota.domain.run import Member, NewRun, State
from rota.errors import StoreCorrupt
from rota.store import ID_MEMORY, AuditEntry, Plan, Retention, RunQuery
from rota.stores.redis.msgpack import pack
from rota.stores.redis.plans import MOST, put_plan
from rota.stores.redis.records import new_item
from storekit.contract import Stage, new_run
from storekit.proxy import Fault, FaultProxy
from storekit.servers import RedisServer, valkey_of_wheel
from tests.stores.redis_stages import at, staged
from tests.stores.test_redis_traffic import calls

DAY = "watch@2026-11-15"
LATER = 4_000_000_000.0
SIZE = 2 * MOST + 50


def items(count: int = SIZE) -> list[NewRun]:
    return [new_run(key=f"r{n}", unique="done", join="set", at=LATER, member=Member(DAY)) for n in range(count)]


def keys(server: RedisServer, namespace: str) -> set[str]:
    names = cast("list[str]", server.send("KEYS", f"{{{namespace}}}*"))
    return {str(name).partition("}")[2].partition(":")[0] for name in names}


async def staged_only(stage: Stage, runs: list[NewRun], token: str = "token") -> Any:
    """Stage a plan of `runs`, as `put_plan` does, and leave it there. Return the `run` of the store."""
    run = cast("Any", stage.store).run
    parts = [runs[at : at + MOST] for at in range(0, len(runs), MOST)]
    for number, part in enumerate(parts):
        await run("stage", token, str(number), pack([[new_item(new) for new in part], []]))
    await run("stage", token, "head", pack([DAY, "replanned", len(parts)]))
    return run


async def test_a_long_plan_is_many_scripts_and_one_answer(namespace: str) -> None:
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, namespace)) as stage:
            wanted = items()
            before = calls(server, "fcall")
            entry = AuditEntry(id="a", by="ada", via="code", action="plans.put")
            answers = (await stage.store.put(wanted, Plan(DAY), entry)).items
            assert calls(server, "fcall") > before + SIZE / MOST
            assert answers == [Decision(new.id, Reason.ACCEPTED) for new in wanted]
            (kept,) = (await stage.store.rows(AuditEntry)).items
            assert (kept.id, kept.changed) == ("a", SIZE)
            again = [*wanted[:10], new := new_run(key="new", member=Member(DAY))]
            answers = (await stage.store.put(again, Plan(DAY, frozenset({"r10"})))).items
            assert answers[:11] == [Decision(each.id, Reason.ACCEPTED) for each in (*wanted[:10], new)]
            assert answers[11:] == [Decision(each.id, Reason.CANCELLED) for each in wanted[11:]]
            assert not keys(server, namespace) & {"plan", "plans", "planned", "planning"}


Act = Callable[[Stage], Awaitable[object]]
ACTS: dict[str, Act] = {
    "a list": lambda stage: stage.store.runs(RunQuery()),
    "depths": lambda stage: stage.store.depths(),
    "a claim": lambda stage: stage.claim(),
    "a put": lambda stage: stage.put(new_run()),
    "another plan": lambda stage: stage.store.put([], Plan("another")),
    "another long plan": lambda stage: stage.store.put(
        [new_run(member=Member("another")) for _ in range(MOST + 1)], Plan("another")
    ),
    "a sweep": lambda stage: stage.store.sweep(Retention()),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("kind", ["valkey", "redis_6"])
async def test_whoever_comes_carries_out_the_plan_of_a_planner_that_has_died(
    request: pytest.FixtureRequest, namespace: str, kind: str, act: Act
) -> None:
    server: RedisServer = request.getfixturevalue(kind)
    old, wanted = items(SIZE)[-1:], items(SIZE - 1)
    async with staged(at(server.url, namespace)) as planner, staged(at(server.url, namespace)) as other:
        await planner.put(*old)
        run = await staged_only(planner, wanted)
        assert (await other.store.runs(RunQuery(limit=1000))).runs == [await other.see(old[0])], "nothing has begun"
        assert (await run("plan", "token"))[1] == 1, "there is more to do"
        assert "planning" in keys(server, namespace)
        await act(other)
        assert "planning" not in keys(server, namespace)
        states = {each.id: each.state for each in (await other.store.runs(RunQuery(limit=1000, group=DAY))).runs}
        assert states == {old[0].id: State.CANCELLED} | {new.id: State.QUEUED for new in wanted}


async def test_a_direct_put_waits_for_a_plan(valkey: RedisServer, namespace: str) -> None:
    backend = at(valkey.url, namespace)
    async with staged(backend) as stage:
        run = await staged_only(stage, items())
        await run("plan", "token")
        new = new_run()
        assert backend.put_directly(new) is None, "the caller sends it over the portal, which helps"
        await stage.put(new)
        assert backend.put_directly(new_run())


@pytest.mark.parametrize("kind", ["valkey", "redis_6"])
async def test_no_run_is_handed_to_a_worker_before_the_plan_is_carried_out(
    request: pytest.FixtureRequest, namespace: str, kind: str
) -> None:
    """All runs of the plan but one are there already; the cancels come in a later part."""
    server: RedisServer = request.getfixturevalue(kind)
    known, new = items(MOST), new_run(member=Member(DAY))
    async with staged(at(server.url, namespace)) as stage, stage.listening() as ear:
        await stage.put(old := new_run(at=LATER, member=Member(DAY)), *known)
        await stage.claim("ada", ready=True)
        run = await staged_only(stage, [*known, new])
        for _ in range(2):
            assert (await run("plan", "token"))[1] == 1, "the cancels are still to come"
        assert "ada" in (await ear.all()).workers
        assert ear.carried is None
        assert [each.id for each in (await stage.claim("ada", 2)).runs] == [new.id]
        assert (await stage.see(old)).state is State.CANCELLED


async def test_what_a_planner_has_staged_is_forgotten_if_it_dies(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        await staged_only(stage, items())
        assert {"plan", "plans"} <= keys(valkey, namespace)
        stage.wait(ID_MEMORY + 1)
        await stage.store.sweep(Retention())
        assert not {"plan", "plans"} & keys(valkey, namespace)
        assert (await cast("Any", stage.store).run("plan", "token"))[1] == -1


async def test_a_plan_that_fails_keeps_nobody_waiting(valkey: RedisServer, namespace: str) -> None:
    """A part that no version can read: somebody has changed it on the server."""
    async with staged(at(valkey.url, namespace)) as stage:
        run = cast("Any", stage.store).run

        async def spoiled(verb: str, *words: Any) -> list[Any]:
            spoils = verb == "stage" and words[1] == "1"
            return cast("list[Any]", await run(verb, *words[:2], "spoiled") if spoils else await run(verb, *words))

        with pytest.raises(StoreCorrupt, match="a plan could not be carried out"):
            await put_plan(spoiled, cast("Any", None), items(), Plan(DAY))
        await stage.put(new_run())
        assert "planning" not in keys(valkey, namespace)


async def test_a_part_that_cannot_be_written_ends_the_plan_too(valkey: RedisServer, namespace: str) -> None:
    """Somebody has put something else in the place of what a part writes last."""
    backend = at(valkey.url, namespace)
    async with staged(backend) as stage:
        valkey.send("SET", f"{backend.address.root}o:0", "spoiled")
        with pytest.raises(StoreCorrupt, match="a plan could not be carried out: WRONGTYPE"):
            await stage.store.put(items(), Plan(DAY))
        assert not keys(valkey, namespace) & {"planning", "planned"}


@pytest.mark.parametrize("fault", ["cut before", "cut after"])
@pytest.mark.parametrize("request_", ["_stage", "head", "_plan", "d1", "c0", "forget"])
async def test_a_request_or_reply_of_a_plan_may_be_lost(
    valkey: RedisServer, namespace: str, request_: str, fault: Fault
) -> None:
    wanted = items()
    async with FaultProxy(valkey.address) as proxy, staged(at(valkey.url_at(proxy.address), namespace)) as stage:
        await stage.put(old := new_run(key="old", at=LATER, member=Member(DAY)))
        proxy.fail_next(fault, match=request_.encode())
        answers = (await stage.store.put(wanted, Plan(DAY))).items
        assert proxy.struck == [fault]
        assert answers == [*(Decision(new.id, Reason.ACCEPTED) for new in wanted), Decision(old.id, Reason.CANCELLED)]
        assert not keys(valkey, namespace) & {"plan", "plans", "planned", "planning"}
