"""A lone plain put on Redis: a short way of its own, which leads where the long one does and takes few commands."""

import re
import time
from typing import Any, cast

import pytest

from rota.domain.overrides import Overrides
from rota.domain.policy import Limit
from rota.domain.run import NewRun
from rota.domain.spec import TaskSpec
from rota.store import ID_MEMORY, Retention, RunQuery
from rota.stores.redis.msgpack import pack
from rota.stores.redis.records import new_item
from storekit.contract import Stage, new_run
from storekit.contract.stage import GREET
from storekit.servers import RedisServer, valkey_of_wheel
from tests.stores.redis_stages import at, staged

AHEAD = 1000.0
"""Seconds by which the store's time is ahead of the clock of the server: so two puts have one time."""
READS = {
    "string": ("GET",),
    "hash": ("HGETALL",),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", "0", "-1", "WITHSCORES"),
}
PUTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "a key": {"key": "k"},
    "a priority": {"priority": 7},
    "a delay": {"delay": 2.5},
    "a delay and a key": {"delay": 0.00001, "key": "k"},
    "a time to come": {"at": 4_000_000_000.0},
    "a time that has passed": {"at": 1.0},
    "headers": {"headers": {"a": "b"}},
    "a queue": {"queue": "images"},
    "an expiry": {"expires_after": 60.0},
    "a unique key": {"key": "k", "unique": "active"},
    "long arguments": {"args": b'{"name":"%s"}' % (b"x" * 2000)},
}
SPECS = {
    "not declared": None,
    "declared": TaskSpec(GREET),
    "disabled": TaskSpec(GREET, enabled=False),
    "limited per key": TaskSpec(GREET, limit=Limit(per_key=1)),
}


def contents(server: RedisServer, root: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for key in cast("list[str]", server.send("KEYS", f"{root}*")):
        command, *rest = READS[str(server.send("TYPE", key))]
        found[key.removeprefix(root)] = server.send(command, key, *rest)
    return found


def commands(server: RedisServer) -> dict[str, int]:
    """How often each command has run, those within a function too."""
    stats = server.info("commandstats")
    return {name.removeprefix("cmdstat_"): int(re.findall(r"calls=(\d+)", text)[0]) for name, text in stats.items()}


async def put_the_long_way(stage: Stage, new: NewRun) -> None:
    """An empty plan is no plan; but a put that brings one goes the usual way."""
    await cast("Any", stage.store).run("put", pack([new_item(new)]), b"")


@pytest.mark.parametrize("kind", ["valkey", "redis_6"])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("options", PUTS.values(), ids=PUTS)
async def test_a_lone_put_stores_what_it_stores_by_the_long_way(
    request: pytest.FixtureRequest, namespace: str, kind: str, spec: TaskSpec | None, options: dict[str, Any]
) -> None:
    """By a function and by a script, twice each: the second put is one that was sent again."""
    server: RedisServer = request.getfixturevalue(kind)
    new, found, now = new_run(**options), list[dict[str, object]](), float(int(time.time() + AHEAD))
    for way in ("short", "long"):
        backend = at(server.url, namespace + way)
        async with staged(backend) as stage:
            backend.latest = now
            if spec is not None:
                await stage.store.declare([spec])
            for _ in range(2):
                await (stage.admit(new) if way == "short" else put_the_long_way(stage, new))
        found.append(contents(server, backend.address.root))
    short, long = found
    assert short == long


async def test_a_run_behind_the_limit_of_its_key_is_parked(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        await stage.store.declare([TaskSpec(GREET, limit=Limit(per_key=1))])
        await stage.running(new_run(key="k"))
        await stage.put(parked := new_run(key="k"))
        assert (await stage.see(parked)).parked


async def test_an_override_is_obeyed(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        await stage.store.override(GREET, Overrides(enabled=False, version=1))
        assert not await stage.admit(new_run())


async def test_a_lone_put_takes_fourteen_commands() -> None:
    """To call a command costs the server more than the command. The long way takes twice the time of this one."""
    with RedisServer(valkey_of_wheel()) as server:
        async with staged(at(server.url, "n")) as stage:
            await stage.put(new_run())
            before = commands(server)
            await stage.put(new_run())
            after = commands(server)
        own = {name: count - before.get(name, 0) for name, count in after.items()}
        assert own.pop("fcall") == 1
        assert sum(own.values()) - own["info"] == 14, own


async def test_a_lone_put_is_found_after_all_earlier_runs_are_forgotten(valkey: RedisServer, namespace: str) -> None:
    """The sweep has forgotten the bucket that the run comes into; so the put enters it anew."""
    async with staged(at(valkey.url, namespace)) as stage:
        for _ in range(3):
            await stage.ended()
        stage.wait(ID_MEMORY + 1)
        while (await stage.store.sweep(Retention(succeeded=0, most=0, least=0))).more:
            pass
        assert (await stage.store.runs(RunQuery())).runs == []
        await stage.put(new := new_run())
        assert [run.id for run in (await stage.store.runs(RunQuery())).runs] == [new.id]
