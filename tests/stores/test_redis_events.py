"""Events on a Redis that is full, was emptied, or went on from an older copy of its data."""

from typing import cast

import pytest

from rota.domain.lifecycle import Succeeded
from rota.domain.settlement import Verdict
from rota.errors import StoreUnavailable
from storekit.contract.recording import Reader, reader
from storekit.contract.stage import new_run
from storekit.servers import RedisServer, valkey_of_wheel
from tests.stores.redis_stages import at, staged


async def test_a_full_server_ends_runs_and_records_it() -> None:
    with RedisServer(valkey_of_wheel(), {"maxmemory": "200mb", "maxmemory-policy": "noeviction"}) as server:
        async with staged(at(server.url, "full")) as stage:
            run = await stage.running()
            events = await reader(stage)
            server.send("CONFIG", "SET", "maxmemory", "1000")
            with pytest.raises(StoreUnavailable):
                await stage.put(new_run())
            assert await stage.end(run, Succeeded()) is Verdict.APPLIED
            assert await events.names() == [("succeeded", run.id)]


async def test_a_server_that_was_emptied_leaves_a_gap(valkey: RedisServer, namespace: str) -> None:
    backend = at(valkey.url, namespace)
    async with staged(backend) as stage:
        events, late = await reader(stage), await reader(stage)
        await stage.put(*(new_run() for _ in range(5)))
        await events.read()
        for key in cast(list[str], valkey.send("KEYS", f"{backend.address.root}*")):
            valkey.send("DEL", key)
        assert await events.names() == [("gap", None)]
        run = new_run()
        await stage.put(run)
        assert await events.names() == [("queued", run.id)]
        assert await late.names() == [("gap", None), ("queued", run.id)]


async def test_a_copy_without_the_last_events_leaves_a_gap_also_when_it_has_overtaken(
    valkey: RedisServer, namespace: str
) -> None:
    """As after a failover: a replica gives the numbers again that it has never heard of."""
    backend = at(valkey.url, namespace)
    root = backend.address.root
    async with staged(backend) as stage:
        events = await reader(stage)
        await stage.put(new_run())
        for name in ("events", "event"):
            valkey.send("COPY", f"{root}{name}", f"{root}{name}-copy")
        await stage.put(*(new_run() for _ in range(3)))
        first, _, _, last = await events.read()
        for name in ("events", "event"):
            valkey.send("RENAME", f"{root}{name}-copy", f"{root}{name}")
        assert (await Reader(stage, last.cursor).names())[0] == ("gap", None), "it is behind the reader"
        await stage.put(*(new_run() for _ in range(6)))
        assert len(await Reader(stage, first.cursor).read()) == 6
        found = await Reader(stage, last.cursor).names()
        assert (found[0], len(found)) == (("gap", None), 8), "it has overtaken the reader"


async def test_a_number_that_was_deleted_makes_no_verb_fail(valkey: RedisServer, namespace: str) -> None:
    backend = at(valkey.url, namespace)
    async with staged(backend) as stage:
        events, run = await reader(stage), await stage.running()
        assert len(await events.read()) == 2
        valkey.send("DEL", f"{backend.address.root}event")
        assert await stage.end(run, Succeeded()) is Verdict.APPLIED
        assert await events.names() == [("gap", None), ("succeeded", run.id)]
