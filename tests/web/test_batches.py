"""Many runs in one request: read, checked and put together, and each answered for itself."""

from typing import Any

from rota import Period, Rota
from rota.domain.spec import TaskSpec
from tests.requirement import requirement
from tests.web.conftest import Caller
from tests.web.test_metrics import scrape

BATCH = "/api/v1/runs/batch"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_tasks_of_other_programs_are_looked_up_once_for_all_runs(app: Rota, caller: Caller) -> None:
    http = caller()
    await app.client().declare([TaskSpec(name, executor="async", parameters=("i",)) for name in ("far", "away")])
    body = {"runs": [{"task": name, "args": {"i": i}} for i in range(50) for name in ("far", "away", "none")]}
    before = (await scrape(http))["rota_store_seconds_count", "verb=rows"]
    answer = await http.post(BATCH, json=body)
    scraping = (await scrape(http))["rota_store_seconds_count", "verb=rows"]
    another = (await scrape(http))["rota_store_seconds_count", "verb=rows"]
    assert [item["status"] for item in answer.json()["items"]] == [201, 201, 404] * 50
    assert scraping - before == another - scraping + 1, "one read for the batch, beside those of a scrape"


async def test_each_run_of_a_batch_has_its_own_options_and_the_trace_of_the_request(caller: Caller) -> None:
    http = caller()
    given: list[dict[str, Any]] = [
        {"task": "add", "args": {"a": 1}},
        {"task": "add", "args": {"a": 2}, "priority": 5, "key": "k"},
        {"task": "add", "args": {"a": 3}, "priority": 5, "key": "k"},
        {"task": "add", "args": {"b": 7, "a": 4}, "headers": {"x": "y"}, "id": "mine"},
        {"task": "add", "args": {"a": 5}},
    ]
    items = (await http.post(BATCH, json={"runs": given}, headers={"traceparent": PARENT})).json()["items"]
    runs = [(await http.get(f"/api/v1/runs/{item['run']}")).json() for item in items]
    assert [run["args"] for run in runs] == [one["args"] for one in given]
    assert [(run["priority"], run["key"]) for run in runs] == [(0, None), (5, "k"), (5, "k"), (0, None), (0, None)]
    assert runs[3]["id"] == "mine"
    assert runs[3]["headers"] == {"traceparent": PARENT, "x": "y"}
    assert {run["headers"]["traceparent"] for run in runs} == {PARENT}


@requirement("4.1")
async def test_what_is_wrong_with_one_run_is_said_of_it_alone(app: Rota, caller: Caller) -> None:
    @app.task(once=Period("day"))
    async def daily() -> None: ...

    good = {"task": "add", "args": {"a": 1}}
    cases = [
        ({"task": "add", "args": {"a": 1}, "delay": 1, "at": "2027-01-01T00:00:00Z"}, 422),
        ({"task": "a b"}, 422),
        ({"task": "greet", "args": {"user": "ada"}}, 403),
        ({"task": "daily"}, 201),
        ({"task": "daily"}, 200),
    ]
    http = caller("submitter:add,daily,a b")
    answer = await http.post(BATCH, json={"runs": [good, *(body for body, _ in cases), good]})
    assert [item["status"] for item in answer.json()["items"]] == [201, *(status for _, status in cases), 201]


async def test_text_that_is_no_utf_8_harms_no_other_run(caller: Caller) -> None:
    body = b'{"runs":[{"task":"add","args":{"a":1}},{"task":"\xff"},{"task":"add","args":{"a":2}}]}'
    answer = await caller().post(BATCH, content=body, headers={"Content-Type": "application/json"})
    assert [item["status"] for item in answer.json()["items"]] == [201, 400, 201]
    assert answer.json()["items"][1]["errors"] == [{"pointer": "/runs/1", "detail": "this is not JSON"}]


async def test_a_batch_says_that_it_is_not_atomic(caller: Caller) -> None:
    http, runs = caller(), [{"task": "add", "args": {"a": 1}}]
    assert (await http.post(BATCH, json={"runs": runs, "atomic": False})).json()["items"][0]["status"] == 201
    refused = await http.post(BATCH, json={"runs": runs, "atomic": True})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/atomic")
    assert len((await http.get("/api/v1/runs")).json()["items"]) == 1
