"""Overrides over HTTP: an operator changes what the code says of a task, and takes it back."""

from rota import Limit, Rota
from tests.web.conftest import Caller

PATH = "/api/v1/tasks/add"


async def test_an_override_is_shown_beside_the_code_and_taken_away_again(app: Rota, caller: Caller) -> None:
    http = caller("operator")
    before = await http.get(PATH)
    assert (before.json()["overrides"], before.json()["limit"]) == (None, None)
    made = await http.patch(PATH, json={"limit": 5, "timeout": 30, "retry": 2, "note": "flood"})
    assert made.status_code == 200
    given = made.json()["overrides"]
    assert (given["limit"]["total"], given["timeout"], given["retry"]["limit"]) == (5, 30.0, 2)
    assert (given["by"], given["note"], given["enabled"], given["rate"]) == ("operator", "flood", None, None)
    assert made.json()["timeout"] is None, "the code's value"
    read = await http.get(PATH)
    assert read.headers["etag"] == made.headers["etag"] != before.headers["etag"]
    assert read.json()["overrides"] == given
    less = await http.patch(PATH, json={"limit": None}, headers={"If-Match": made.headers["etag"]})
    assert (less.json()["overrides"]["limit"], less.json()["overrides"]["timeout"]) == (None, 30.0)
    gone = await http.patch(PATH, json={"timeout": None, "retry": None}, headers={"If-Match": less.headers["etag"]})
    assert gone.json()["overrides"] is None
    (entry, *_) = (await caller("admin").get("/api/v1/audit")).json()["items"]
    assert (entry["action"], entry["by"], entry["subjects"]) == ("tasks.override", "operator", ["add"])
    await app.override("add", limit=Limit(3))
    assert (await http.get(PATH)).json()["overrides"]["limit"]["total"] == 3


async def test_the_first_of_two_wins_and_the_other_sees_its_version(caller: Caller) -> None:
    http = caller("operator")
    read = (await http.get(PATH)).headers["etag"]
    first = await http.patch(PATH, json={"limit": 5}, headers={"If-Match": read})
    assert first.status_code == 200
    second = await http.patch(PATH, json={"limit": 6}, headers={"If-Match": read})
    assert (second.status_code, second.headers["etag"]) == (412, first.headers["etag"])
    without = await http.patch(PATH, json={"limit": 6})
    assert (without.status_code, without.headers["etag"]) == (428, first.headers["etag"])
    assert (await http.get(PATH)).json()["overrides"]["limit"]["total"] == 5


async def test_what_the_code_forbids_is_refused(caller: Caller) -> None:
    http = caller("operator")
    assert (await http.patch(PATH, json={"limit": {"per_key": 1}})).status_code == 409, "its runs have no key"
    assert (await http.patch("/api/v1/tasks/greet", json={"limit": {"per_key": 1}})).status_code == 200
    assert (await http.patch(PATH, json={"key": "{a}"})).status_code == 422, "an option of the code"
    assert (await http.patch(PATH, json={"retry": {"backoff": "never"}})).status_code == 422
    assert (await http.patch("/api/v1/tasks/nobody", json={"limit": 5})).status_code == 404
    assert (await caller("viewer").patch(PATH, json={"limit": 5})).status_code == 403
    assert (await http.patch(PATH, json={"enabled": False})).status_code == 200
    refused = await caller("submitter").post("/api/v1/runs", json={"task": "add", "args": {"a": 1}})
    assert (refused.status_code, refused.json()["reason"]) == (409, "disabled")
    assert "disabled by an override" in (await http.get(f"{PATH}/why")).text
