"""Closing an open Redis store ends what it had under way, whatever arrives at that moment."""

import asyncio

import msgspec
import pytest

from rota.stores.redis.client import RedisClient
from rota.stores.redis.subscriber import Subscriber
from storekit.servers import RedisSentinel, RedisServer
from tests.stores.redis_stages import at

HINT = msgspec.msgpack.encode((["ada"], [])).decode("latin-1")
STEPS = range(8)
"""Turns of the loop between the arrival of a message and the closing: more than it takes to be handled."""


@pytest.mark.parametrize("steps", STEPS)
async def test_a_hint_that_arrives_while_the_store_closes_does_not_keep_it_open(
    valkey: RedisServer, namespace: str, steps: int
) -> None:
    """In Python 3.11 `wait_for` forgets that it was cancelled if what it waited for came at the same time."""
    address = at(valkey.url, namespace).address
    link = RedisClient(address)
    subscriber = Subscriber(link)
    async with subscriber.listening():
        assert valkey.send("PUBLISH", f"{address.root}hints", HINT) == 1  # this loop stands still until it is sent
        for _ in range(steps):
            await asyncio.sleep(0)
        async with asyncio.timeout(20):
            await subscriber.close()
    await link.close()


@pytest.mark.parametrize("steps", range(40))
async def test_a_search_for_the_primary_ends_when_it_is_cancelled(redis_sentinel: RedisSentinel, steps: int) -> None:
    """However far it has come. The driver waits in the same way, if it is given a time to wait."""
    resolver = RedisClient(at(redis_sentinel.url, "n").address).resolver
    search = asyncio.create_task(resolver.connection())
    for _ in range(steps):
        await asyncio.sleep(0)
    if search.done():
        await search.result().disconnect(nowait=True)
        return
    search.cancel()
    await asyncio.wait((search,))
    assert search.cancelled()
