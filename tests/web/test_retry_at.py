"""A refused submit says when it is worth another try, if the store knows."""

from datetime import datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from rota import Rota
from rota.client.refusals import retry_at
from rota.domain.decision import Reason
from rota.domain.guards import Cooldown, Guards, Mark
from rota.store import MarkRow
from storekit.contract.stage import new_run
from storekit.servers.postgres import PostgresServer
from storekit.servers.redis import RedisServer
from tests.web.conftest import Caller


async def test_a_submit_within_a_window_learns_its_end(app: Rota, caller: Caller) -> None:
    @app.task(unique="done", within=600, key="{user}")
    async def mail(user: str) -> None: ...

    http, body = caller("admin"), {"task": "mail", "args": {"user": "ada"}}
    async with app:
        first = await http.post("/api/v1/runs", json=body, headers={"Prefer": "wait=30"})
        assert first.json()["ended"]["state"] == "succeeded", first.text
        refused = await http.post("/api/v1/runs", json=body)
    assert (refused.status_code, refused.json()["reason"]) == (409, "already_done")
    accepted, over = (
        datetime.fromisoformat(at) for at in (first.json()["ended"]["created_at"], refused.json()["retry_at"])
    )
    assert abs((over - accepted).total_seconds() - 600) <= 0.001


async def test_a_submit_in_the_way_of_a_run_does_not_know(caller: Caller) -> None:
    http, body = caller(), {"task": "greet", "args": {"user": "ada"}}
    await http.post("/api/v1/runs", json=body)
    refused = await http.post("/api/v1/runs", json=body)
    assert refused.status_code == 409
    assert "retry_at" not in refused.json()


@pytest.fixture(params=["memory", "sqlite", "redis", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param in ("memory", "sqlite"):
        return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/rota.db"
    server: RedisServer | PostgresServer
    server = request.getfixturevalue("valkey" if request.param == "redis" else "postgres")
    return server.url


async def test_every_store_tells_the_end_of_a_rest_a_breaker_and_a_window(url: str, namespace: str) -> None:
    app = Rota(url, namespace=namespace if url.startswith(("redis", "postgres")) else None)
    rest, breaker = Cooldown(0, 50), Cooldown(2, 300, Reason.BREAKER)
    async with app.client() as client:
        now = await client.now()
        await client.mark([MarkRow("add", "calm", Mark(now, now, 0)), MarkRow("add", "broken", Mark(None, now, 2))])
        for key, rules, reason, seconds in (
            ("calm", (rest, breaker), Reason.RESTING, 50),
            ("broken", (breaker,), Reason.BREAKER, 300),
            ("broken", (rest, breaker), Reason.RESTING, 300),
        ):
            run = new_run("add", key=key, cooldowns=rules)
            assert (await client.submit(run)).reason is reason
            assert await retry_at(client, run, reason) == pytest.approx(now + seconds, abs=0.001)
        once = replace(new_run("add", key="k"), unique_key="k", guards=Guards(unique="done", within=600.0))
        await client.mark([MarkRow("add", "k", Mark(now, now, 0))])
        assert once.unique_row is not None
        await client.mark([MarkRow(once.unique_row, "k", Mark(now - 5, now - 5, 0))])
        refused = await client.submit(once)
        assert refused.reason is Reason.ALREADY_DONE
        assert await retry_at(client, once, refused.reason) == pytest.approx(now + 595, abs=0.001)
        for reason in (Reason.QUEUE_FULL, Reason.ALREADY_QUEUED, Reason.DISABLED):
            assert await retry_at(client, once, reason) is None
