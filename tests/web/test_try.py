"""Try over HTTP and in Python: what a submit would answer, guard by guard."""

import pytest

from rota import InvalidArguments, Rota
from tests.web.conftest import Caller

TRY = "/api/v1/tasks/greet/try"


async def test_a_try_says_which_guard_refuses_and_changes_nothing(app: Rota, caller: Caller) -> None:
    http = caller("submitter")
    free = (await http.post(TRY, json={"args": {"user": "ada"}})).json()
    assert (free["accepted"], free["reason"], free["run"]) == (True, "accepted", None)
    assert {each["says"] for each in free["guards"]} == {"passes"}
    assert (await caller().get("/api/v1/runs")).json()["items"] == []
    run = await app.tasks["greet"].submit(user="ada")
    held = (await http.post(TRY, json={"args": {"user": "ada"}})).json()
    assert (held["accepted"], held["reason"], held["run"]) == (False, "already_queued", run.id)
    says = {each["guard"]: each["says"] for each in held["guards"]}
    assert says == {"enabled": "passes", "unique": "refuses", "max_pending": "not_reached"}
    assert bool(await app.tasks["greet"].try_(user="bob"))
    assert not await app.tasks["greet"].try_(user="ada")
    with pytest.raises(InvalidArguments):
        await app.tasks["greet"].try_(usr="ada")
    assert (await http.post(TRY, json={"args": {"usr": "ada"}})).status_code == 422
    assert (await http.post("/api/v1/tasks/nobody/try", json={})).status_code == 404
    whole = await http.post(TRY, json={"task": "greet", "args": {"user": "bob"}, "note": "as POST /runs takes it"})
    assert whole.json()["accepted"] is True
    other = await http.post(TRY, json={"task": "add", "args": {"user": "bob"}})
    assert (other.status_code, other.json()["errors"][0]["pointer"]) == (422, "/task")
    assert (await caller("viewer").post(TRY, json={})).status_code == 403


async def test_a_submit_says_its_own_join(caller: Caller) -> None:
    http, new = caller("submitter"), {"task": "add", "args": {"a": 1}, "unique": "queued", "key": "k"}
    first = (await http.post("/api/v1/runs", json=new | {"delay": 600})).json()
    path = f"/api/v1/runs/{first['run']}"
    before = (await caller().get(path)).json()["due_at"]
    refusing = {"args": {"a": 1}, "unique": "queued", "key": "k", "join": "refuse"}
    tried = (await http.post("/api/v1/tasks/add/try", json=refusing)).json()
    assert (tried["accepted"], tried["reason"]) == (False, "already_queued")
    assert (await http.post("/api/v1/runs", json=new | {"join": "refuse"})).status_code == 409
    joined = await http.post("/api/v1/runs", json=new | {"join": "set", "delay": 60})
    assert (joined.status_code, joined.json()["run"]) == (200, first["run"])
    assert (await caller().get(path)).json()["due_at"] < before, "set: to the newcomer's time"
    for wrong in ({"join": "later"}, {"join": "set", "unique": None}):
        assert (await http.post("/api/v1/runs", json=new | wrong)).status_code == 422
