"""What goes over the wire to Redis, and what is kept there."""

import asyncio

import pytest

from rota.domain.decision import Reason
from rota.domain.lifecycle import Succeeded
from rota.errors import InvalidOptions
from rota.store import ID_MEMORY, Command, Hint, Retention, RunQuery
from rota.stores.redis import subscriber
from storekit.contract import new_run
from storekit.servers import RedisServer, valkey_of_wheel
from tests.stores.redis_stages import at, staged

BIG = b'{"name":"' + b"x" * 5000 + b'"}'


def calls(server: RedisServer, command: str) -> int:
    stats = server.info("commandstats").get(f"cmdstat_{command}", "calls=0,")
    return int(stats.split("calls=")[1].split(",")[0])


async def test_submits_that_come_together_share_requests_and_a_lone_one_leaves_at_once() -> None:
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, "n")) as stage:
            await stage.put(new_run())
            before = calls(server, "fcall")
            await stage.put(new_run())
            assert calls(server, "fcall") == before + 1
            news = [new_run() for _ in range(50)]
            decisions = await asyncio.gather(*(stage.admit(new) for new in news))
            assert [decision.run for decision in decisions] == [new.id for new in news]
            assert calls(server, "fcall") <= before + 4


async def test_a_refusal_goes_to_the_one_who_asked(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        await stage.put(new_run(key="k", unique="active", join="refuse"))
        asked = [new_run(key=key, unique="active", join="refuse") for key in ("a", "k", "b", "a")]
        reasons = [(await decided).reason for decided in [asyncio.create_task(stage.admit(new)) for new in asked]]
        accepted, refused = Reason.ACCEPTED, Reason.ALREADY_QUEUED
        assert reasons == [accepted, refused, accepted, refused]


async def test_a_command_about_many_runs_is_several_short_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does nothing else while one of them runs."""
    monkeypatch.setattr("rota.stores.redis.store.REDIS_PART", 10)
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, "n")) as stage:
            news = [new_run() for _ in range(25)]
            await stage.put(*news)
            before = calls(server, "fcall")
            asked = [news[0].id, "nobody", *(new.id for new in news[1:])]
            assert (await stage.store.control(Command.CANCEL, asked)).items == [1, 0, *[1] * 24]
            assert calls(server, "fcall") == before + 3


async def test_a_long_silence_is_broken_by_a_question_and_hints_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriber, "SILENCE", 0.02)
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, "n")) as stage, stage.store.changes() as hints:
            asked = calls(server, "ping")
            while await asyncio.to_thread(calls, server, "ping") < asked + 10:
                pass
            await stage.claim("ada")
            await stage.put(new_run())
            assert await anext(hints) == Hint(workers=frozenset({"ada"}))


async def test_the_clock_never_goes_back_between_backends(valkey: RedisServer, namespace: str) -> None:
    here, there = at(valkey.url, namespace), at(valkey.url, namespace)
    here.skew = 1000
    async with here.open() as near, there.open() as far:
        ahead = (await near.put([])).now
        assert (await far.put([])).now >= ahead
        assert (await far.depths()).now >= ahead


async def test_big_arguments_are_kept_apart_and_go_with_their_run(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        first = new_run(key="k", unique="queued", args=BIG)
        await stage.put(first)
        assert (await stage.see(first)).args == BIG
        for args in (b'{"name":"small"}', BIG, BIG[:-2] + b'y"}'):
            assert (await stage.admit(new_run(key="k", unique="queued", args=args))).run == first.id
            assert (await stage.see(first)).args == args
        run = await stage.take()
        await stage.end(run, Succeeded())
        assert (await stage.see(run)).args == run.args == BIG[:-2] + b'y"}'
        stage.wait(ID_MEMORY + 1)
        await stage.store.sweep(Retention(succeeded=0, most=0, least=0))
        kept = valkey.send("KEYS", f"{{{namespace}}}[rb]:*")
        assert kept == []


async def test_what_is_done_leaves_nothing_behind_but_what_is_remembered(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        for key in ("k", None):
            await stage.ended(new_run(key=key, unique="active", expires_after=60))
        stage.wait(10 * 86_400)
        for _ in range(3):
            await stage.store.sweep(Retention(succeeded=0, most=0, least=0))
        keys = valkey.send("KEYS", f"{{{namespace}}}*")
        assert isinstance(keys, list)
        left = {str(key).partition("}")[2].partition(":")[0] for key in keys}
        assert left <= {"clock", "seq", "workers", "seen", "crews", "c", "i", "idle", "batch", "reports", "totals"}


async def test_a_list_by_due_time_sorts_few_runs_that_are_in_no_lane(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        parent = new_run(delay=60)
        await stage.put(parent, *(new_run(needs=(parent.id,)) for _ in range(4000)))
        assert (await stage.store.runs(RunQuery(order="due", limit=1))).runs[0].needs
        await stage.put(*(new_run(needs=(parent.id,)) for _ in range(1001)))
        with pytest.raises(InvalidOptions, match="at most 5,000, and there are more"):
            await stage.store.runs(RunQuery(order="due"))
        assert (await stage.store.runs(RunQuery(order="due", task="none"))).runs == []
