"""Pull workers on the stores of other processes: a claim is repeated elsewhere, and a fence is refused."""

from pathlib import Path

import pytest

from rota import PullWorker, Rota
from rota.domain.spec import TaskSpec
from rota.pull.pulling import Pulling
from rota.pull.values import LAST_NUMBER, ClaimBody
from storekit.servers.postgres import PostgresServer
from storekit.servers.redis import RedisServer


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/rota.db"
    server: RedisServer | PostgresServer
    server = request.getfixturevalue("valkey" if request.param == "redis" else "postgres")
    return server.url


async def test_a_claim_is_repeated_in_another_process(url: str, namespace: str) -> None:
    named = None if url.startswith("sqlite") else namespace
    here, there = Rota(url, namespace=named), Rota(url, namespace=named)
    async with here.client() as client, there.client() as other:
        await client.declare([TaskSpec("pulled", executor="pull", open=True)])
        run = await here.submit("pulled", x=1)
        asked = ClaimBody(worker="w", n=LAST_NUMBER, tasks=["pulled"], free=5)
        first = await Pulling(client).claim("me/w", asked)
        again = await Pulling(other).claim("me/w", asked)
        assert [each.id for each in first.runs] == [run.id]
        assert again.runs == first.runs
        async with PullWorker(there.backend, ["pulled"]) as worker:
            assert await worker.claim(wait=0) == []
            assert await worker.succeed(first.runs[0]) == "stale", "it is another's"
        assert (await run.refresh()).state == "running"


async def test_the_batch_of_a_lost_claim_is_given_back_at_the_end(url: str, namespace: str) -> None:
    app = Rota(url, namespace=None if url.startswith("sqlite") else namespace)
    async with app.client() as client:
        await client.declare([TaskSpec("pulled", executor="pull", open=True)])
        run = await app.submit("pulled")
        async with PullWorker(app.backend, ["pulled"], name="w") as worker:
            assert await worker.claim(wait=0) != []
            worker._claims = 0  # its answer got lost  # pyright: ignore[reportPrivateUsage]
        found = await run.refresh()
        assert (found.state, found.attempts[0].outcome, found.failures) == ("queued", "released", 0)
