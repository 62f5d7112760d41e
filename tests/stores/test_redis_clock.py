"""The store's clock on Redis: never back, unless it was wrong."""

import pytest

from storekit.contract import new_run
from storekit.servers import RedisServer
from tests.stores.redis_stages import at, staged

YEAR = 365 * 86_400.0


@pytest.mark.parametrize(("ahead", "stays"), [(1800.0, True), (YEAR, False)])
async def test_a_server_that_was_far_ahead_does_not_stop_the_time(
    valkey: RedisServer, namespace: str, ahead: float, stays: bool
) -> None:
    wrong = at(valkey.url, namespace)
    wrong.skew = ahead
    async with staged(wrong) as stage:
        then = (await stage.store.put([new_run("elsewhere")])).now
    async with staged(at(valkey.url, namespace)) as stage:
        assert ((await stage.now()) >= then) is stays


async def test_a_claim_passes_over_so_many_late_ones_and_no_more(valkey: RedisServer, namespace: str) -> None:
    async with staged(at(valkey.url, namespace)) as stage:
        for _ in range(3):
            await stage.put(*(new_run(expires_after=60) for _ in range(1000)))
        stage.wait(61)
        await stage.put(last := new_run())
        claims = 0
        while not (claim := await stage.claim()).runs:
            assert claim.wake == 0
            claims += 1
        assert claim.runs[0].id == last.id
        assert claims > 0
