"""Pull workers: claim, renew and settle over HTTP, with the fences of the store; tasks without Python."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rota import Period, Rota
from rota.pull.values import PullOutcome
from rota.pull.worker import PullWorker
from rota.web import Principal, asgi
from rota.web.rights import ROLES
from tests.requirement import requirement
from tests.web.conftest import HOST, Caller, by_role

API = "/api/v1"
SHOUT = {
    "description": "Shout",
    "retry": {"limit": 1, "delay": 0},
    "schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


@pytest.fixture
async def http(caller: Caller) -> AsyncIterator[httpx.AsyncClient]:
    """An admin, and the task `shout`, which no Python knows."""
    async with caller() as client:
        made = await client.put(f"{API}/tasks/shout", json=SHOUT)
        assert (made.status_code, made.json()["executor"]) == (201, "pull")
        yield client


async def submit(http: httpx.AsyncClient, text: str = "hey", **options: object) -> str:
    made = await http.post(f"{API}/runs", json={"task": "shout", "args": {"text": text}, **options})
    assert made.status_code == 201, made.text
    return str(made.json()["run"])


async def claim(http: httpx.AsyncClient, n: int, worker: str = "w", **more: object) -> httpx.Response:
    body = {"worker": worker, "n": n, "tasks": ["shout"], "free": 10, "lease": 30, **more}
    return await http.post(f"{API}/claim", json=body)


async def settle(http: httpx.AsyncClient, run: object, outcome: str, worker: str = "w", **more: Any) -> str:
    assert isinstance(run, dict)
    said = {"run": run["id"], "fence": run["fence"], "outcome": outcome, **more}
    answer = await http.post(f"{API}/settle", json={"worker": worker, "outcomes": [said]})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["items"][0])


@requirement("0.13")
async def test_a_lost_reply_loses_nothing(http: httpx.AsyncClient) -> None:
    id = await submit(http)
    batch = (await claim(http, 1)).json()
    assert [(run["id"], run["args"], run["attempt"]) for run in batch["runs"]] == [(id, {"text": "hey"}, 1)]
    assert (await claim(http, 1)).json()["runs"] == batch["runs"], "the same number, the same batch"
    assert (await claim(http, 2)).json()["runs"] == []
    back = await claim(http, 1)
    assert (back.status_code, back.json()["n"]) == (409, 2)
    assert await settle(http, batch["runs"][0], "succeeded", result="HEY") == "applied"
    assert await settle(http, batch["runs"][0], "succeeded", result="HEY") == "already"
    run = (await http.get(f"{API}/runs/{id}")).json()
    assert (run["state"], run["result"], run["attempts"][0]["worker"]) == ("succeeded", "HEY", "admin/w")


async def test_a_claim_waits_for_a_run_and_is_repeated_on_another_replica(http: httpx.AsyncClient, app: Rota) -> None:
    waiting = asyncio.create_task(claim(http, 1, wait=30))
    assert await asyncio.wait([waiting], timeout=0.1) == (set(), {waiting})
    id = await submit(http)
    batch = (await waiting).json()
    assert [run["id"] for run in batch["runs"]] == [id]
    replica = httpx.ASGITransport(asgi(app, by_role, hosts=[]))
    async with httpx.AsyncClient(transport=replica, base_url=HOST, headers=http.headers) as other:
        assert (await claim(other, 1, wait=30)).json()["runs"] == batch["runs"]


async def test_the_service_decides_what_comes_of_a_failure(http: httpx.AsyncClient) -> None:
    id = await submit(http)
    error = {"type": "Oops", "message": "no voice", "traceback": "at line 1"}
    for n, state in ((1, "queued"), (2, "failed")):
        (run,) = (await claim(http, n)).json()["runs"]
        assert await settle(http, run, "failed", error=error, seconds=0.5) == "applied"
        shown = (await http.get(f"{API}/runs/{id}")).json()
        assert (shown["state"], shown["failures"], shown["error"]["message"]) == (state, n, "no voice")
    stats = (await claim(http, 3), await http.get(f"{API}/stats"))[1].json()["items"]
    assert [(row["retried"], row["failed"]) for row in stats if row["task"] == "shout"] == [(1, 1)]


@pytest.mark.parametrize(
    ("outcome", "more", "state"),
    [
        ("retry_after", {"after": 60}, "queued"),
        ("snooze", {"after": 60, "saved": {"at": 3}}, "queued"),
        ("discard", {"error": {"message": "never"}}, "failed"),
        ("release", {}, "queued"),
        ("skipped", {"error": {"message": "nothing to do"}}, "succeeded"),
        ("timed_out", {}, "queued"),
        ("cancelled", {}, "cancelled"),
    ],
)
async def test_what_a_worker_may_say(outcome: str, more: dict[str, Any], state: str, http: httpx.AsyncClient) -> None:
    id = await submit(http)
    (run,) = (await claim(http, 1)).json()["runs"]
    assert await settle(http, run, outcome, **more) == "applied"
    assert (await http.get(f"{API}/runs/{id}")).json()["state"] == state


async def test_a_worker_that_was_frozen_is_refused_by_its_fence(http: httpx.AsyncClient, app: Rota) -> None:
    id = await submit(http)
    (mine,) = (await claim(http, 1, "frozen", lease=5)).json()["runs"]
    app.backend.skew += 6
    assert (await claim(http, 1, "other")).json()["runs"] == [], "this claim finds that the lease has lapsed"
    (theirs,) = (await claim(http, 2, "other", wait=10)).json()["runs"]
    assert (theirs["id"], theirs["fence"], theirs["attempt"]) == (id, mine["fence"] + 1, 2)
    leases = {"worker": "frozen", "leases": [{"run": id, "fence": mine["fence"]}]}
    assert (await http.post(f"{API}/renew", json=leases)).json()["items"] == ["lost"]
    assert await settle(http, mine, "succeeded", "frozen", result="late") == "stale"
    assert await settle(http, theirs, "succeeded", "frozen", result="stolen") == "stale", "a guessed fence"
    assert await settle(http, theirs, "succeeded", "other", result="HEY") == "applied"
    assert (await http.get(f"{API}/runs/{id}")).json()["result"] == "HEY"


async def test_what_an_operator_says_of_a_task_counts_for_the_runs_in_hand(http: httpx.AsyncClient, app: Rota) -> None:
    retried, late = await submit(http, "one", retry=0), await submit(http, "two", timeout=3600)
    changed = await http.patch(f"{API}/tasks/shout", json={"timeout": 20, "retry": {"limit": 1, "delay": 0}})
    assert changed.status_code == 200
    runs = {run["id"]: run for run in (await claim(http, 1, lease=60)).json()["runs"]}
    assert await settle(http, runs[retried], "failed", error={"type": "Boom", "message": "no"}) == "applied"
    assert (await http.get(f"{API}/runs/{retried}")).json()["state"] == "queued", "it is tried again"
    app.backend.skew += 21
    body = {"worker": "w", "lease": 60, "leases": [{"run": late, "fence": 1}]}
    assert (await http.post(f"{API}/renew", json=body)).json()["items"] == ["lost"], "its timeout is over"


async def test_a_renewal_carries_notes_and_brings_commands(http: httpx.AsyncClient, app: Rota) -> None:
    id = await submit(http, timeout=20)
    (run,) = (await claim(http, 1, lease=60)).json()["runs"]
    assert run["deadline"] is not None
    body = {"worker": "w", "lease": 60, "leases": [{"run": id, "fence": run["fence"]}]}
    notes = {"notes": {id: {"progress": {"share": 0.5, "message": "half"}, "saved": [1]}}}
    assert (await http.post(f"{API}/renew", json=body | notes)).json()["items"] == ["ok"]
    assert (await http.get(f"{API}/runs/{id}")).json()["progress"] == {"share": 0.5, "message": "half"}
    await http.post(f"{API}/runs/{id}/cancel", json={})
    assert (await http.post(f"{API}/renew", json=body)).json()["items"] == ["cancel"]
    app.backend.skew += 21
    assert (await http.post(f"{API}/renew", json=body)).json()["items"] == ["lost"], "its timeout is over"


async def test_schedules_fire_although_only_pull_workers_claim(http: httpx.AsyncClient, app: Rota) -> None:
    schedule = {"trigger": "every 10s", "task": "shout", "args": {"text": "tick"}}
    assert (await http.put(f"{API}/schedules/ticking", json=schedule)).status_code == 201
    app.backend.skew += 11
    (run,) = (await claim(http, 1, wait=10)).json()["runs"]
    assert run["args"] == {"text": "tick"}


async def test_a_caller_that_hangs_up_gets_no_run_leased(http: httpx.AsyncClient) -> None:
    waiting = asyncio.create_task(claim(http, 1, wait=30))
    assert await asyncio.wait([waiting], timeout=0.1) == (set(), {waiting})
    waiting.cancel()
    await asyncio.wait([waiting])
    id = await submit(http)
    (run,) = (await claim(http, 1, "other", wait=10)).json()["runs"]
    assert (run["id"], run["fence"]) == (id, 1)


async def test_a_credential_reaches_only_its_tasks_and_its_own_leases(http: httpx.AsyncClient, caller: Caller) -> None:
    id = await submit(http)
    refused = await claim(caller("worker:add"), 1)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (403, "/tasks/0")
    assert (await caller("worker:add").put(f"{API}/tasks/shout", json={})).status_code == 403
    (run,) = (await claim(caller("worker"), 1)).json()["runs"]
    assert run["id"] == id
    assert await settle(http, run, "succeeded") == "stale", "the same name under another credential is another worker"
    assert await settle(caller("worker"), run, "succeeded") == "applied"


async def test_a_credential_of_a_queue_claims_from_no_other(http: httpx.AsyncClient, app: Rota) -> None:
    await submit(http)
    id = await submit(http, queue="slow")

    def auth(scope: object) -> Principal:
        return Principal("slow", ROLES["worker"], queues=("slow",))

    transport = httpx.ASGITransport(asgi(app, auth))
    async with httpx.AsyncClient(transport=transport, base_url=HOST) as slow:
        assert (await claim(slow, 1, queues=["default"])).status_code == 403
        assert [run["id"] for run in (await claim(slow, 1)).json()["runs"]] == [id]


async def test_a_task_is_declared_once_and_replaced_on_purpose(http: httpx.AsyncClient) -> None:
    path = f"{API}/tasks/shout"
    again = await http.put(path, json=SHOUT)
    assert again.status_code == 200, "every start of a worker declares"
    other = SHOUT | {"timeout": 5}
    refused = await http.put(path, json=other)
    assert (refused.status_code, refused.headers["ETag"]) == (428, again.headers["ETag"])
    assert (await http.put(path, json=other, headers={"If-Match": '"old"'})).status_code == 412
    assert (await http.put(path, json=other, headers={"If-None-Match": "*"})).status_code == 412
    done = await http.put(path, json=other, headers={"If-Match": again.headers["ETag"]})
    assert (done.status_code, done.json()["timeout"]) == (200, 5)
    assert (await http.get(path)).headers["ETag"] == done.headers["ETag"]
    owned = await http.put(f"{API}/tasks/add", json={})
    assert (owned.status_code, "change the code" in owned.json()["detail"]) == (409, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "{text.__class__}"},
        {"key": "{text:>999999999}"},
        {"key": "{nobody}"},
        {"schema": {"type": "text"}},
        {"schema": {"properties": {"a": 1}}},
        {"schema": {"properties": {f"p{at}": {} for at in range(101)}}},
        {"schema": {"description": "x" * 70_000}},
        {"queue": "a b"},
        {"limit": {}},
    ],
    ids=str,
)
async def test_a_task_that_cannot_be_is_refused(wrong: dict[str, object], http: httpx.AsyncClient) -> None:
    body = {"schema": {"properties": {"text": {"type": "string"}}}} | wrong
    assert (await http.put(f"{API}/tasks/odd", json=body)).status_code == 422


async def test_arguments_are_checked_against_the_schema(http: httpx.AsyncClient) -> None:
    for args, words in (({}, "/text is missing"), ({"text": 3}, "/text: expected string")):
        refused = await http.post(f"{API}/runs", json={"task": "shout", "args": args})
        assert (refused.status_code, words in refused.json()["detail"]) == (422, True), refused.text


@requirement("0.18")
async def test_a_pull_worker_in_python_over_a_store(app: Rota, http: httpx.AsyncClient) -> None:
    first, second = await submit(http), await submit(http, "again")
    async with PullWorker(app.backend, ["shout"]) as worker:
        one, two = await worker.claim(free=2)
        assert [one.id, two.id] == [first, second]
        assert await worker.renew([one, two]) == ["ok", "ok"]
        assert await worker.succeed(one, one.args["text"].upper()) == "applied"
        assert await worker.fail(two, ValueError("no voice")) == "applied"
        (two,) = await worker.claim()
        assert (two.id, two.attempt) == (second, 2)
        asked = PullOutcome(run=two.id, fence=two.fence, outcome="snooze", after=60)
        assert await worker.settle(asked) == ["applied"]
    assert (await http.get(f"{API}/runs/{first}")).json()["result"] == "HEY"


async def test_a_step_gets_the_results_of_the_steps_before_it(http: httpx.AsyncClient, app: Rota) -> None:
    @app.task
    async def count() -> int:
        return 7

    @app.task
    async def tell(count: int) -> str:
        return str(count)

    day = app.flow("day", once=Period.day())
    day.step(count)
    day.step(tell, after=count)
    await day.start("2026-11-18")
    for n, (task, results) in enumerate([("count", {}), ("tell", {"count": 7})], start=1):
        (run,) = (await claim(http, n, tasks=[task])).json()["runs"]
        assert run["results"] == results
        await settle(http, run, "succeeded", result=7)
