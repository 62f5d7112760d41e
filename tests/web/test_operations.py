"""Operations over HTTP: a dry run first, then the expected count, progress and stop."""

import msgspec

from rota import Operated, Rota
from rota.client.operations import Operation, Reached, perform
from tests.web.conftest import Caller, told

RUNS, OPERATIONS = "/api/v1/runs", "/api/v1/operations"


async def submitted(caller: Caller, count: int) -> list[str]:
    body = {"runs": [{"task": "add", "args": {"a": i}, "delay": 60} for i in range(count)]}
    return [each["run"] for each in (await caller().post(f"{RUNS}/batch", json=body)).json()["items"]]


async def test_a_dry_run_comes_first_and_its_count_is_expected(app: Rota, caller: Caller) -> None:
    await submitted(caller, 3)
    http = caller("operator")
    body = {"action": "cancel", "filter": {"task": ["add"], "state": ["queued"]}, "note": "wrong list"}
    dry = await http.post(OPERATIONS, json=body)
    assert dry.status_code == 200
    found = dry.json()
    assert (found["matched"], found["more"], found["by_task"], found["by_state"]) == (
        3,
        False,
        {"add": 3},
        {"queued": 3},
    )
    assert len(found["sample"]) == 3
    assert (await http.post(OPERATIONS, json={**body, "dry_run": False})).status_code == 422
    assert (await http.post(OPERATIONS, json={**body, "dry_run": False, "expect": 2})).status_code == 409
    real = await http.post(OPERATIONS, json={**body, "dry_run": False, "expect": 3})
    assert (real.status_code, real.json()["by"], real.json()["note"]) == (202, "operator", "wrong list")
    where = real.headers["Location"]
    async with app:
        await http.get(f"{RUNS}/{real.json()['id']}", params={"wait": 30})
    ended = (await http.get(where)).json()
    assert (ended["state"], ended["done"], ended["skipped"]) == ("succeeded", 3, 0)
    (run, *_) = (await http.get(RUNS, params={"task": "add"})).json()["items"]
    assert (run["state"], run["note"]) == ("cancelled", "wrong list")
    assert [each["id"] for each in (await http.get(OPERATIONS)).json()["items"]] == [ended["id"]]


async def test_an_operation_says_why_it_skipped_runs(app: Rota, caller: Caller) -> None:
    http, ids = caller(), await submitted(caller, 4)
    await http.post(f"{RUNS}/{ids[0]}/cancel", json={})
    await http.post(f"{RUNS}/{ids[1]}/pause", json={})
    asked = {"ids": ids, "dry_run": False}
    found: dict[str, tuple[int, int, dict[str, int]]] = {}
    async with app:
        for action, more in (("reschedule", {"delay": 600}), ("retry", {}), ("pause", {}), ("cancel", {})):
            made = (await http.post(OPERATIONS, json={"action": action, **asked, **more})).json()["id"]
            await http.get(f"{RUNS}/{made}", params={"wait": 30})
            ended = (await http.get(f"{OPERATIONS}/{made}")).json()
            found[action] = ended["done"], ended["skipped"], ended["skipped_by"]
    assert found == {
        "reschedule": (2, 2, {"cancelled": 1, "paused": 1}),
        "retry": (1, 3, {"queued": 2, "paused": 1}),
        "pause": (2, 2, {"cancelled": 1, "paused": 1}),
        "cancel": (3, 1, {"cancelled": 1}),
    }


async def test_a_record_of_the_version_before_has_no_reasons_and_is_carried_on(caller: Caller, app: Rota) -> None:
    before = msgspec.json.decode(b'{"cursor":"0","operated":{"done":3,"skipped":2},"ended":false}', type=Reached)
    ids = await submitted(caller, 1)
    operation = Operation(action="resume", filter={"ids": ids})
    assert await perform(app.client(), operation, "one", before) == Operated(3, 3, {"queued": 1})


async def test_an_operation_that_waits_is_stopped(caller: Caller) -> None:
    ids = await submitted(caller, 2)
    http = caller()
    made = (await http.post(OPERATIONS, json={"action": "pause", "ids": ids, "dry_run": False})).json()["id"]
    assert told(await http.post(f"{OPERATIONS}/{made}/stop", json={})) == {"changed": True, "state": "cancelled"}
    assert (await http.post(f"{OPERATIONS}/{made}/stop", json={})).status_code == 409
    assert (await http.get(f"{OPERATIONS}/{ids[0]}")).status_code == 404


async def test_an_operation_says_which_runs_and_when(caller: Caller) -> None:
    http = caller()
    for body in (
        {"action": "cancel"},
        {"action": "cancel", "filter": {}},
        {"action": "cancel", "filter": {"task": ["add"]}, "ids": ["x"]},
        {"action": "cancel", "ids": []},
        {"action": "cancel", "ids": ["x"], "delay": 1},
        {"action": "reschedule", "ids": ["x"]},
        {"action": "explode", "ids": ["x"]},
    ):
        assert (await http.post(OPERATIONS, json=body)).status_code == 422, body


async def test_a_credential_for_one_task_acts_on_no_other(app: Rota, caller: Caller) -> None:
    await submitted(caller, 2)
    await caller().post(RUNS, json={"task": "greet", "args": {"user": "ada"}, "delay": 60})
    narrow = caller("operator:greet")
    body = {"action": "cancel", "filter": {"state": ["queued"]}}
    assert (await narrow.post(OPERATIONS, json=body)).json()["by_task"] == {"greet": 1}
    other = {"action": "cancel", "filter": {"task": ["add"]}, "dry_run": False, "expect": 9}
    assert (await narrow.post(OPERATIONS, json=other)).status_code == 409
    made = await narrow.post(OPERATIONS, json={**body, "dry_run": False, "expect": 1})
    assert made.json()["filter"]["task"] == ["greet"]
    assert (await narrow.get(made.headers["Location"])).status_code == 200
    async with app:
        await caller().get(f"{RUNS}/{made.json()['id']}", params={"wait": 30})
    states = {run["task"]: run["state"] for run in (await caller().get(RUNS)).json()["items"]}
    assert (states["add"], states["greet"]) == ("queued", "cancelled")
