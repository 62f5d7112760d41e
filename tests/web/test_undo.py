"""Undo over HTTP: operations by their ids, single acts by the ids of their audit entries."""

import httpx

from rota import Rota
from tests.web.conftest import Caller, told
from tests.web.test_operations import OPERATIONS, RUNS, submitted

AUDIT = "/api/v1/audit"


async def operated(app: Rota, http: httpx.AsyncClient, **body: object) -> str:
    made = (await http.post(OPERATIONS, json={**body, "dry_run": False})).json()["id"]
    await ended(app, http, made)
    return str(made)


async def ended(app: Rota, http: httpx.AsyncClient, id: str) -> None:
    async with app:
        await http.get(f"{RUNS}/{id}", params={"wait": 30})


async def runs_of(http: httpx.AsyncClient, task: str = "add") -> list[dict[str, object]]:
    return list((await http.get(RUNS, params={"task": task})).json()["items"])


async def test_cancelled_runs_come_back_as_new_runs_at_their_old_time(app: Rota, caller: Caller) -> None:
    await submitted(caller, 3)
    http = caller("operator")
    before = sorted(str(run["due_at"]) for run in await runs_of(http))
    made = await operated(app, http, action="cancel", filter={"task": ["add"]}, expect=3)
    first = await http.post(f"{OPERATIONS}/{made}/undo", json={"note": "the wrong list"})
    again = await http.post(f"{OPERATIONS}/{made}/undo", json={})
    assert (first.status_code, again.json()["id"]) == (202, first.json()["id"])
    await ended(app, http, first.json()["id"])
    undone = (await http.get(first.headers["Location"])).json()
    assert (undone["action"], undone["of"], undone["done"], undone["skipped"]) == ("undo", made, 3, 0)
    queued = [run for run in await runs_of(http) if run["state"] == "queued"]
    assert sorted(str(run["due_at"]) for run in queued) == before
    assert (await http.post(f"{OPERATIONS}/{undone['id']}/undo", json={})).status_code == 409


async def test_a_pause_of_some_runs_leaves_the_others_paused(app: Rota, caller: Caller) -> None:
    paused_before, *others = await submitted(caller, 3)
    http = caller("operator")
    await http.post(f"{RUNS}/{paused_before}/pause", json={})
    made = await operated(app, http, action="pause", filter={"task": ["add"]}, expect=3)
    undo = (await http.post(f"{OPERATIONS}/{made}/undo", json={})).json()["id"]
    await ended(app, http, undo)
    assert {run["id"]: run["state"] for run in await runs_of(http)} == {
        paused_before: "paused",
        **dict.fromkeys(others, "queued"),
    }


async def test_a_run_that_was_moved_again_stays_where_it_is(app: Rota, caller: Caller) -> None:
    one, two = await submitted(caller, 2)
    http = caller("operator")
    due = {run["id"]: run["due_at"] for run in await runs_of(http)}
    made = await operated(app, http, action="reschedule", ids=[one, two], delay=600)
    moved = (await http.patch(f"{RUNS}/{two}", json={"due_at": "2099-01-01T00:00:00Z"})).json()["due_at"]
    undo = (await http.post(f"{OPERATIONS}/{made}/undo", json={})).json()["id"]
    await ended(app, http, undo)
    assert {run["id"]: run["due_at"] for run in await runs_of(http)} == {one: due[one], two: moved}
    assert (await http.get(f"{OPERATIONS}/{undo}")).json()["skipped"] == 1


async def test_what_cannot_be_undone_says_why(app: Rota, caller: Caller) -> None:
    http = caller("operator")
    ids = await submitted(caller, 1)
    waits = (await http.post(OPERATIONS, json={"action": "pause", "ids": ids, "dry_run": False})).json()["id"]
    answer = await http.post(f"{OPERATIONS}/{waits}/undo", json={})
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        "the operation has not ended: stop it first, or wait for its end",
    )
    await ended(app, http, waits)
    nothing = await operated(app, http, action="resume", filter={"task": ["greet"]}, expect=0)
    assert (await http.post(f"{OPERATIONS}/{nothing}/undo", json={})).json()["detail"] == "it changed nothing"
    retried = await operated(app, http, action="retry", filter={"task": ["greet"]}, expect=0)
    assert "cancel the new runs" in (await http.post(f"{OPERATIONS}/{retried}/undo", json={})).json()["detail"]
    assert (await http.post(f"{OPERATIONS}/{ids[0]}/undo", json={})).status_code == 404
    assert (await http.post(f"{AUDIT}/nobody/undo", json={})).status_code == 404


async def test_single_acts_are_undone_by_the_id_that_their_answer_has(caller: Caller) -> None:
    http = caller("operator")
    (run,) = await submitted(caller, 1)
    due = (await http.get(f"{RUNS}/{run}")).json()["due_at"]
    moved = await http.patch(f"{RUNS}/{run}", json={"due_at": "2099-01-01T00:00:00Z"})
    assert told(await http.post(f"{AUDIT}/{moved.headers['Rota-Audit']}/undo", json={})) == {"done": 1, "skipped": 0}
    assert (await http.get(f"{RUNS}/{run}")).json()["due_at"] == due
    assert (await http.post(f"{AUDIT}/{moved.headers['Rota-Audit']}/undo", json={})).status_code == 409
    urgent = await http.patch(f"{RUNS}/{run}", json={"priority": 9})
    assert (await http.post(f"{AUDIT}/{urgent.headers['Rota-Audit']}/undo", json={})).status_code == 409
    for act, state in (("pause", "queued"), ("cancel", "cancelled")):
        done = await http.post(f"{RUNS}/{run}/{act}", json={})
        assert (await http.post(f"{AUDIT}/{done.headers['Rota-Audit']}/undo", json={})).status_code == 200
        assert (await http.get(f"{RUNS}/{run}")).json()["state"] == state
    assert [each["state"] for each in await runs_of(http)] == ["queued", "cancelled"]
    paused = await http.post("/api/v1/tasks/add/pause", json={})
    assert (await caller("viewer").post(f"{AUDIT}/{paused.headers['Rota-Audit']}/undo", json={})).status_code == 403
    assert (await http.post(f"{AUDIT}/{paused.headers['Rota-Audit']}/undo", json={})).status_code == 200
    assert (await http.get("/api/v1/tasks/add")).json()["paused"] is False
