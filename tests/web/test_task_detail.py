"""One task over HTTP, with what happens to it now; the same numbers as the metrics have."""

from datetime import datetime

import pytest

from rota import Limit, Rate, Rota
from rota.domain.spec import TaskSpec
from rota.store import ClaimRequest, Report, Tally
from storekit.contract.stage import new_run
from tests.web.conftest import Caller
from tests.web.test_metrics import scrape

NAMED = Limit(3, name="api")
TASKS = [
    TaskSpec("limit api", limit=Limit(3)),
    TaskSpec("fetch", executor="async", limit=Limit(2), limits=(NAMED,)),
    TaskSpec("send", executor="async", limits=(NAMED,)),
]


async def test_a_task_says_what_waits_who_could_start_it_and_which_limits_are_taken(app: Rota, caller: Caller) -> None:
    client, http = app.client(), caller("viewer")
    await client.declare(TASKS)
    await client.put([new_run("fetch"), new_run("send"), new_run("fetch", delay=60)])
    store = await client.store()
    counted = Tally("fetch", 5, 2, cancelled=1, retried=9, waits={0: 7, 4: 1}, durations={2: 8})
    await store.claim(ClaimRequest("ada", 1, ["fetch", "send"], 2, 30, Report(tallies=(counted, Tally("send", 3)))))
    await store.claim(ClaimRequest("bob", 1, ["send"], 0, 30))
    waits = new_run("fetch")
    await client.put([new_run("fetch", needs=(waits.id,)), waits])
    due_at = (await http.get(f"/api/v1/runs/{waits.id}")).json()["due_at"]

    found = (await http.get("/api/v1/tasks/fetch")).json()
    assert (found["oldest_due_at"], found["workers"]) == (due_at, 1)
    own, shared = {"name": None, "total": 2, "used": 1}, {"name": "api", "total": 3, "used": 2}
    assert found["limits_used"] == [own, shared]
    assert found["last_hour"] == {"ended": 8, "failed": 2, "wait_p95": 0.003906, "run_p95": 0.001953}
    other = (await http.get("/api/v1/tasks/send")).json()
    assert (other["oldest_due_at"], other["workers"], other["limits_used"]) == (None, 2, [shared])
    assert other["last_hour"] == {"ended": 3, "failed": 0, "wait_p95": None, "run_p95": None}
    seen = await scrape(http)
    assert (seen["rota_task_workers", "task=fetch"], seen["rota_task_workers", "task=send"]) == (1, 2)
    assert seen["rota_oldest_due_seconds", "task=fetch"] > 0 == seen["rota_oldest_due_seconds", "task=send"]


async def test_a_task_with_a_rate_says_what_is_left_of_it(app: Rota, caller: Caller) -> None:
    client, http = app.client(), caller("viewer")
    rate = Rate(2, per=3600, burst=2)
    keyed = TaskSpec("keyed", executor="async", rate=Rate(1, per_key=True))
    await client.declare([TaskSpec("fetch", executor="async", rate=rate), keyed])
    whole = (await http.get("/api/v1/tasks/fetch")).json()["rate_left"]
    assert whole["left"] == 2
    await client.put([new_run("fetch") for _ in range(3)])
    runs = (await (await client.store()).claim(ClaimRequest("ada", 1, ["fetch"], 1, 30))).runs
    assert (await http.get("/api/v1/tasks/fetch")).json()["rate_left"]["left"] == 1
    await (await client.store()).claim(ClaimRequest("ada", 2, ["fetch"], 2, 30))
    used = (await http.get("/api/v1/tasks/fetch")).json()["rate_left"]
    assert used["left"] == 0
    opens = datetime.fromisoformat(used["opens_at"]).timestamp()
    assert opens == pytest.approx((runs[0].claimed_at or 0.0) + 1800, abs=0.001)
    assert [(await http.get(f"/api/v1/tasks/{name}")).json()["rate_left"] for name in ("add", "keyed")] == [None, None]


async def test_nothing_of_a_paused_task_could_start_and_an_override_is_the_limit(app: Rota, caller: Caller) -> None:
    client, http = app.client(), caller()
    await client.declare(TASKS)
    await client.put([new_run("fetch")])
    tag = (await http.get("/api/v1/tasks/fetch")).headers["ETag"]
    answer = await http.patch("/api/v1/tasks/fetch", json={"limit": 7}, headers={"If-Match": tag})
    assert answer.status_code == 200, answer.text
    await http.post("/api/v1/tasks/fetch/pause", json={})
    found = (await http.get("/api/v1/tasks/fetch")).json()
    assert (found["queued"], found["oldest_due_at"]) == (1, None)
    assert found["limits_used"][0] == {"name": None, "total": 7, "used": 0}
    await http.post("/api/v1/tasks/fetch/resume", json={})
    assert (await http.get("/api/v1/tasks/fetch")).json()["oldest_due_at"] is not None
