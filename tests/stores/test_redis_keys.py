"""Hashes of keys on Redis: from two bytes for each run a list of a key knows which runs to read."""

import random
from typing import cast

import pytest
from msgspec.structs import replace

from rota.domain.run import NewRun
from rota.domain.tuning import Retention
from rota.store import ID_MEMORY, Command, RunQuery
from rota.stores.redis.scripts import KEY_BLOCK
from storekit.contract.stage import Stage, ids, new_run
from storekit.servers import RedisServer
from tests.stores.redis_stages import at, staged

KEYS = (None, "ada", "bob", "eve", "Jürgen/ß")


def blocks(server: RedisServer, root: str) -> list[str]:
    return sorted(str(name) for name in cast("list[object]", server.send("KEYS", f"{root}kh:*")))


async def fill(stage: Stage, runs: int, seed: int = 1) -> list[NewRun]:
    dice, news = random.Random(seed), list[NewRun]()
    while len(news) < runs:
        some = [new_run(key=dice.choice(KEYS)) for _ in range(dice.choice((1, 90, 700)))]
        await stage.put(*some)
        news += some
    return news


async def listed(stage: Stage, key: str, limit: int) -> list[str]:
    query, found = RunQuery(key=key, limit=limit), list[str]()
    while True:
        page = await stage.store.runs(query)
        found += ids(page.runs)
        if page.cursor is None:
            return found
        query = RunQuery(key=key, limit=limit, cursor=page.cursor)


@pytest.mark.parametrize("known", ["all", "none", "the first of them", "some of them"])
async def test_the_runs_of_a_key_are_found_whoever_has_put_them(
    valkey: RedisServer, namespace: str, known: str
) -> None:
    """A version before this one wrote no hashes: its runs are read."""
    backend = at(valkey.url, namespace)
    root = backend.address.root
    async with staged(backend) as stage:
        news = await fill(stage, 2 * KEY_BLOCK)
        names = blocks(valkey, root)
        assert len(names) > 1
        for name in names if known == "none" else ():
            valkey.send("DEL", name)
        if known == "the first of them":
            half = str(valkey.send("STRLEN", names[0]))
            valkey.send("SET", names[1], "")
            valkey.send("SETRANGE", names[0], str(int(half) // 2), "\0" * 100)
        if known == "some of them":
            for at_ in range(0, KEY_BLOCK, 30):
                valkey.send("SETRANGE", names[0], str(2 * at_), "\0\0")
        for key in filter(None, KEYS):
            wanted = [new.id for new in reversed(news) if new.key == key]
            assert await listed(stage, key, 500) == wanted
            assert await listed(stage, key, 37) == wanted


async def test_a_run_with_two_keys_is_found_by_both(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        both = replace(new_run(key="a", unique="queued"), unique_key="b")
        alone = replace(new_run(unique="queued"), unique_key="c")
        await stage.put(both, new_run(), alone, new_run(key="other"))
        for key, new in (("a", both), ("b", both), ("c", alone)):
            assert ids((await stage.store.runs(RunQuery(key=key, brief=True))).runs) == [new.id]


async def test_the_hashes_go_with_the_last_of_their_runs(valkey: RedisServer, namespace: str) -> None:
    backend = at(valkey.url, namespace)
    root = backend.address.root
    async with staged(backend) as stage:
        news = [new_run(key="k") for _ in range(KEY_BLOCK + 10)]
        await stage.put(*news)
        assert len(blocks(valkey, root)) == 2
        await stage.store.control(Command.CANCEL, ids(news[:KEY_BLOCK]))
        stage.wait(ID_MEMORY + 1)
        while (await stage.store.sweep(Retention(succeeded=0, failed=0, most=0, least=0))).forgotten:
            assert len(blocks(valkey, root)) in (1, 2)
        assert len(blocks(valkey, root)) == 1
        assert len(await listed(stage, "k", 500)) == 10
