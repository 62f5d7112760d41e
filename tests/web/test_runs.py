"""Runs over HTTP."""

import pytest

from rota import Rota
from rota.domain.run import Run
from rota.store import RunQuery
from rota.web.api.runs import Filter
from tests.requirement import requirement
from tests.web.conftest import Caller, told

RUNS = "/api/v1/runs"


@requirement("4.1")
async def test_a_run_is_submitted_and_its_result_read(app: Rota, caller: Caller) -> None:
    http = caller()
    made = await http.post(RUNS, json={"task": "add", "args": {"a": 2, "b": 3}})
    assert (made.status_code, made.json()["reason"], made.json()["created"]) == (201, "accepted", True)
    where = made.headers["Location"]
    waiting = (await http.get(where)).json()
    assert (waiting["state"], waiting["args"]) == ("queued", {"a": 2, "b": 3})
    assert (await http.get(f"{where}/result")).status_code == 409
    async with app:
        ended = (await http.get(where, params={"wait": 30})).json()
    assert ended["state"] == "succeeded"
    assert told(await http.get(f"{where}/result")) == {"result": 5}


async def test_an_equal_run_is_refused_with_the_run_in_the_way(caller: Caller) -> None:
    http = caller()
    first = (await http.post(RUNS, json={"task": "greet", "args": {"user": "ada"}})).json()["run"]
    again = await http.post(RUNS, json={"task": "greet", "args": {"user": "ada"}})
    assert (again.status_code, again.headers["content-type"]) == (409, "application/problem+json")
    assert (again.json()["reason"], again.json()["run"]) == ("already_queued", first)


async def test_wrong_arguments_and_fields_are_named_by_their_place(caller: Caller) -> None:
    http = caller()
    wrong = await http.post(RUNS, json={"task": "add", "args": {"a": "two"}})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/args/a")
    strange = await http.post(RUNS, json={"task": "add", "prio": 1})
    assert (strange.status_code, strange.json()["errors"][0]["pointer"]) == (422, "/prio")
    listed = await http.post(RUNS, json={"task": "add", "args": [1]})
    assert (listed.status_code, listed.json()["errors"][0]["pointer"]) == (422, "/args")
    unknown = await http.post(RUNS, json={"task": "ad", "args": {}})
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "unknown_task")
    assert (await http.post(RUNS, json={"task": "ad", "unknown_ok": True})).status_code == 201


@pytest.mark.parametrize(
    ("args", "pointer"),
    [({"a": "x"}, "/args/a"), ({}, "/args/a"), ({"a": 1, "c": 2}, "/args/c"), ({"a": 1, "b": [0]}, "/args/b")],
)
async def test_an_argument_that_is_wrong_is_named_by_its_place(caller: Caller, args: object, pointer: str) -> None:
    answer = await caller().post(RUNS, json={"task": "add", "args": args})
    assert (answer.status_code, [one["pointer"] for one in answer.json()["errors"]]) == (422, [pointer])


async def test_a_place_inside_of_an_argument_is_named_and_that_of_a_schema(app: Rota, caller: Caller) -> None:
    @app.task
    async def sum_up(rows: list[dict[str, int]]) -> None: ...

    http = caller()
    wrong = await http.post(RUNS, json={"task": "sum_up", "args": {"rows": [{"n": 1}, {"n": "x"}]}})
    assert wrong.json()["errors"][0]["pointer"] == "/args/rows/1", "the names inside are the caller's"
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert (await http.put("/api/v1/tasks/resize", json={"schema": schema})).status_code == 201
    for args, pointer in (({}, "/args/path"), ({"path": 3}, "/args/path")):
        answer = await http.post(RUNS, json={"task": "resize", "args": args})
        assert answer.json()["errors"][0]["pointer"] == pointer, answer.text


async def test_arguments_without_names_are_told_the_names(caller: Caller) -> None:
    http = caller()
    for path, body in ((RUNS, {"task": "add", "args": [1]}), ("/api/v1/tasks/add/try", {"args": [1]})):
        answer = await http.post(path, json=body)
        assert answer.json()["detail"] == "the body: args is an object, the arguments by name: a, b"
        assert answer.json()["errors"][0]["pointer"] == "/args"


async def test_an_instant_has_an_offset(caller: Caller) -> None:
    answer = await caller().post(RUNS, json={"task": "add", "args": {"a": 1}, "at": "2027-01-01T00:00:00"})
    assert answer.json()["errors"] == [{"pointer": "/at", "detail": "Expected `datetime` with a timezone component"}]


@pytest.mark.parametrize("moment", ["2027-01-01T00:00:00", "0001-01-01T00:00:00", "0001-01-01T00:00:00Z"])
@pytest.mark.parametrize("name", ["since", "until"])
async def test_an_instant_of_a_filter_is_none_of_the_zone_of_the_server(name: str, moment: str, caller: Caller) -> None:
    http = caller()
    for path in (RUNS, f"{RUNS}/count"):
        answer = await http.get(path, params={name: moment})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"?{name}"), path
    answer = await http.post("/api/v1/operations", json={"action": "cancel", "filter": {name: moment}})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"/filter/{name}")


async def test_a_run_of_a_batch_that_does_not_even_fit_harms_no_other(caller: Caller) -> None:
    good = {"task": "add", "args": {"a": 1}}
    bad = [{"task": "add", "args": [1]}, {"task": "add", "colour": 1}, 7, {"task": "add", "args": {"a": "x"}}]
    answer = await caller().post(f"{RUNS}/batch", json={"runs": [good, *bad, good]})
    assert answer.status_code == 200
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [201, 422, 422, 422, 422, 201]
    places = [item["errors"][0]["pointer"] for item in items[1:5]]
    assert places == ["/runs/1/args", "/runs/2/colour", "/runs/3", "/runs/4/args/a"]
    assert items[1]["detail"].endswith("by name: a, b")
    assert (await caller().post(f"{RUNS}/batch", json={"runs": 7})).status_code == 422


async def test_one_bad_run_of_a_batch_harms_no_other(caller: Caller) -> None:
    http = caller()
    good, bad = {"task": "add", "args": {"a": 1}}, {"task": "add", "args": {"c": 1}}
    items = (await http.post(f"{RUNS}/batch", json={"runs": [good, bad, good]})).json()["items"]
    assert [item["status"] for item in items] == [201, 422, 201]
    found = (await http.get(RUNS, params={"task": "add"})).json()
    assert [run["id"] for run in found["items"]] == [items[2]["run"], items[0]["run"]]


async def test_pages_go_on_where_the_last_one_ended(caller: Caller) -> None:
    http = caller()
    made = [(await http.post(RUNS, json={"task": "add", "args": {"a": i}})).json()["run"] for i in range(5)]
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await http.get(RUNS, params={"limit": "2", **cursor})).json()
        seen += [run["id"] for run in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert seen == made[::-1]


@requirement("4.2")
async def test_a_waiting_run_is_paused_resumed_cancelled_and_retried(caller: Caller) -> None:
    http = caller()
    id = (await http.post(RUNS, json={"task": "add", "args": {"a": 1}})).json()["run"]
    for verb, state in (("pause", "paused"), ("resume", "queued"), ("cancel", "cancelled")):
        answer = await http.post(f"{RUNS}/{id}/{verb}", json={"note": "because"})
        assert (answer.status_code, told(answer)) == (200, {"changed": True, "state": state})
    assert (await http.post(f"{RUNS}/{id}/cancel", json={})).status_code == 409
    again = await http.post(f"{RUNS}/{id}/retry", json={})
    assert again.status_code == 201
    assert (await http.get(f"{RUNS}/{again.json()['run']}")).json()["origin"]["of"] == id


async def test_secrets_are_masked_and_payloads_need_their_right(app: Rota, caller: Caller) -> None:
    admin, viewer = caller(), caller("viewer")
    body = {"task": "greet", "args": {"user": "ada", "password": "hunter2"}}
    id = (await admin.post(RUNS, json=body)).json()["run"]
    assert (await admin.get(f"{RUNS}/{id}")).json()["args"] == {"user": "ada", "password": "***"}
    assert (await viewer.get(f"{RUNS}/{id}")).json()["args"] is None
    async with app:
        assert (await viewer.get(f"{RUNS}/{id}", params={"wait": 30})).json()["result"] is None
    assert told(await admin.get(f"{RUNS}/{id}/result")) == {"result": {"hello": "ada", "api_key": "***"}}
    assert (await viewer.get(f"{RUNS}/{id}/result")).status_code == 403


async def test_a_credential_for_one_task_sees_and_submits_no_other(caller: Caller) -> None:
    admin, narrow = caller(), caller("submitter:add")
    other = (await admin.post(RUNS, json={"task": "greet", "args": {"user": "ada"}})).json()["run"]
    own = await narrow.post(RUNS, json={"task": "add", "args": {"a": 1}})
    assert own.status_code == 201
    await admin.post(RUNS, json={"task": "greet", "args": {"user": "eve"}})
    assert (await narrow.post(RUNS, json={"task": "greet", "args": {"user": "bob"}})).status_code == 403
    assert (await narrow.get(f"{RUNS}/{other}")).status_code == 404
    assert [run["task"] for run in (await narrow.get(RUNS)).json()["items"]] == ["add"]
    page = (await narrow.get(RUNS, params={"limit": 1})).json()
    assert ([run["id"] for run in page["items"]], page["next"]) == ([own.json()["run"]], None), "others take no place"
    nothing = (await narrow.get(RUNS, params={"task": "greet"})).json()
    assert (nothing["items"], nothing["next"]) == ([], None)
    for path in ("errors", "timeline"):
        assert "greet" not in (await narrow.get(f"/api/v1/{path}")).text


def test_the_filter_of_http_is_the_filter_of_the_stores() -> None:
    ours = set(RunQuery.__struct_fields__) - {"ids", "limit", "cursor", "brief"}
    assert set(Filter.__struct_fields__) == ours


def test_run_is_shown_whole() -> None:
    from rota.web.api.runs import RUN

    assert set(RUN["properties"]) == set(Run.__struct_fields__) - {"body"}


async def test_a_request_with_an_idempotency_key_makes_one_run_for_its_credential(caller: Caller) -> None:
    ada, bob, key = caller("operator"), caller("admin"), {"Idempotency-Key": "order-17"}
    body = {"task": "add", "args": {"a": 1}}
    first, again = [await ada.post(RUNS, json=body, headers=key) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["run"] == again.json()["run"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert (await bob.post(RUNS, json=body, headers=key)).json()["run"] != first.json()["run"]
    other = await ada.post(RUNS, json={"task": "add", "args": {"a": 2}}, headers=key)
    assert (other.status_code, other.json()["reason"]) == (422, "id_conflict")
    assert (await ada.post(RUNS, json={**body, "id": "mine"}, headers=key)).status_code == 422
    assert (await ada.post(RUNS, json=body, headers={"Idempotency-Key": "x" * 201})).status_code == 422
    assert (await ada.post(RUNS, json={**body, "id": "mine"})).json()["run"] == "mine"
