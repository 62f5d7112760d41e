"""Runs over HTTP, continued: count, lineage, change, delete."""

from pathlib import Path

import httpx
import msgspec
import pytest

from rota import Rota
from rota.testing import StoreClock
from rota.web import asgi
from tests.web.conftest import HOST, Caller, by_role, told

RUNS = "/api/v1/runs"
ADMIN = {"Authorization": "Bearer admin"}


async def made(caller: Caller, **body: object) -> str:
    return str((await caller().post(RUNS, json={"task": "add", "args": {"a": 1}, **body})).json()["run"])


async def test_runs_are_counted_up_to_a_bound(caller: Caller) -> None:
    for _ in range(3):
        await made(caller)
    await made(caller, task="greet", args={"user": "ada"})
    http = caller()
    count = told(await http.get(f"{RUNS}/count", params={"state": "queued"}))
    assert count == {"count": 4, "more": False, "groups": None}
    count = (await http.get(f"{RUNS}/count", params={"at_most": 2, "group_by": "task"})).json()
    assert (count["count"], count["more"]) == (2, True)
    count = (await http.get(f"{RUNS}/count", params={"group_by": "task"})).json()
    assert count["groups"] == [{"value": "add", "count": 3}, {"value": "greet", "count": 1}]
    assert (await http.get(f"{RUNS}/count", params={"at_most": 20_000})).status_code == 422
    narrow = caller("viewer:add")
    assert (await narrow.get(f"{RUNS}/count")).json()["count"] == 3
    assert (await narrow.get(f"{RUNS}/count", params={"task": "greet"})).json()["count"] == 0


@pytest.mark.parametrize("url", ["memory://", "sqlite"])
async def test_a_count_is_of_what_a_list_shows(url: str, tmp_path: Path) -> None:
    """Leases and sessions are runs, too, which no list shows unless it is asked for them."""
    app = Rota(f"sqlite:///{tmp_path}/rota.db" if url == "sqlite" else url)
    transport = httpx.ASGITransport(asgi(app, by_role))
    http = httpx.AsyncClient(transport=transport, base_url=HOST, headers=ADMIN)
    async with app.client(), http, app.lease("disk", seconds=60):
        for params in ({}, {"group_by": "state"}, {"group_by": "task"}, {"group_by": "error"}, {"q": "disk"}):
            assert (await http.get(f"{RUNS}/count", params=params)).json()["count"] == 0, params
        assert (await http.get(RUNS)).json()["items"] == []
        named = {"task": "rota.lease:disk"}
        assert len((await http.get(RUNS, params=named)).json()["items"]) == 1
        assert (await http.get(f"{RUNS}/count", params=named)).json()["count"] == 1
        await app.submit("elsewhere", unknown_ok=True)
        await app.submit("elsewhere", unknown_ok=True)
        async with (
            app.lease("tape", seconds=60),
            app.lease("door", seconds=60),
        ):  # the newest, which a count meets first
            for group_by in ("state", "error"):
                for most, count, more in ((1, 1, True), (3, 2, False)):
                    params = {"at_most": str(most), "group_by": group_by}
                    answer = (await http.get(f"{RUNS}/count", params=params)).json()
                    assert (answer["count"], answer["more"]) == (count, more), params


async def test_a_queued_run_is_changed_only_in_the_version_that_was_read(caller: Caller) -> None:
    http, id = caller(), await made(caller, delay=60)
    read = await http.get(f"{RUNS}/{id}")
    body = {"priority": 7, "due_at": "2040-01-01T00:00:00Z", "args": {"b": 5}, "note": "later"}
    changed = await http.patch(f"{RUNS}/{id}", json=body, headers={"If-Match": read.headers["ETag"]})
    assert changed.status_code == 200
    run = changed.json()
    assert (run["priority"], run["due_at"], run["args"]) == (7, "2040-01-01T00:00:00.000000Z", {"a": 1, "b": 5})
    late = await http.patch(f"{RUNS}/{id}", json={"priority": 1}, headers={"If-Match": read.headers["ETag"]})
    assert (late.status_code, late.headers["ETag"]) == (412, changed.headers["ETag"])
    assert (await http.patch(f"{RUNS}/{id}", json={"priority": 1})).status_code == 200


async def test_a_change_is_checked_before_it_is_made(caller: Caller) -> None:
    http, id = caller(), await made(caller, delay=60)
    for body, pointer in (({"args": {"a": "x"}}, "/args/a"), ({"args": {"a": "***"}}, "/args"), ({"prio": 1}, "/prio")):
        answer = await http.patch(f"{RUNS}/{id}", json=body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert (await http.patch(f"{RUNS}/{id}", json={})).status_code == 422
    assert (await caller("operator:greet").patch(f"{RUNS}/{id}", json={"priority": 1})).status_code == 404
    await http.post(f"{RUNS}/{id}/cancel", json={})
    assert (await http.patch(f"{RUNS}/{id}", json={"priority": 1})).status_code == 409


async def test_a_secret_stays_unless_it_is_replaced(app: Rota, caller: Caller) -> None:
    http = caller()
    id = await made(caller, task="greet", args={"user": "ada", "password": "hunter2"}, delay=60)
    assert (await http.patch(f"{RUNS}/{id}", json={"priority": 1})).status_code == 200
    assert (await app.run(id)).args["password"] == "hunter2"


async def test_an_ended_run_is_deleted_after_a_minute(app: Rota, caller: Caller) -> None:
    http, id = caller(), await made(caller)
    assert (await http.delete(f"{RUNS}/{id}")).status_code == 409
    await http.post(f"{RUNS}/{id}/cancel", json={})
    assert (await http.delete(f"{RUNS}/{id}")).headers["Retry-After"] == "60"
    StoreClock(app.backend).move(minutes=2)
    assert (await http.delete(f"{RUNS}/{id}", params={"note": "by hand"})).status_code == 204
    assert (await http.get(f"{RUNS}/{id}")).status_code == 404


async def test_lineage_names_the_runs_before_and_behind(app: Rota, caller: Caller) -> None:
    http, first = caller(), await made(caller)
    await http.post(f"{RUNS}/{first}/cancel", json={})
    second = (await http.post(f"{RUNS}/{first}/retry", json={})).json()["run"]
    found = (await http.get(f"{RUNS}/{first}/lineage")).json()
    assert ([each["id"] for each in found["retries"]], found["retry_of"]) == ([second], [])
    found = (await http.get(f"{RUNS}/{second}/lineage")).json()
    assert ([each["id"] for each in found["retry_of"]], found["origin"]["kind"]) == ([first], "retry")


async def test_lineage_of_a_step_names_its_neighbours(app: Rota, caller: Caller) -> None:
    @app.task
    async def load() -> int:
        return 1

    @app.task
    async def report() -> int:
        return 2

    daily = app.flow("daily", once=lambda now: "today")
    daily.step(report, after=[daily.step(load)])
    started = await daily.start()
    found = (await caller().get(f"{RUNS}/{started['load'].run}/lineage")).json()
    assert ([each["step"] for each in found["after"]], found["before"]) == (["report"], [])
    found = (await caller().get(f"{RUNS}/{started['report'].run}/lineage")).json()
    assert ([each["step"] for each in found["before"]], found["after"]) == (["load"], [])


async def test_a_retry_may_change_arguments_and_keeps_the_secrets_that_it_does_not_name(
    app: Rota, caller: Caller
) -> None:
    http = caller("operator")
    first = (await http.post(RUNS, json={"task": "greet", "args": {"user": "nobody", "password": "s3"}})).json()["run"]
    async with app:
        await http.get(f"{RUNS}/{first}", params={"wait": 10})
    change = {"args": {"user": "ada"}, "note": "a name that exists"}
    made = [(await http.post(f"{RUNS}/{first}/retry", json=change)).json() for _ in range(2)]
    assert made[0]["run"] == made[1]["run"]
    again = await app.client().run(made[0]["run"])
    assert msgspec.json.decode(again.args) == {"user": "ada", "password": "s3"}
    assert (again.origin.kind, again.origin.of) == ("retry", first)
    masked = await http.post(f"{RUNS}/{first}/retry", json={"args": {"password": "***"}})
    unbound = await http.post(f"{RUNS}/{first}/retry", json={"args": {"nobody_knows": 1}})
    assert (masked.status_code, unbound.status_code) == (422, 422)


async def test_a_change_is_checked_by_the_schema_of_a_task_whose_code_is_elsewhere(caller: Caller) -> None:
    http = caller()
    schema = {"type": "object", "properties": {"side": {"type": "integer", "minimum": 1}}, "required": ["side"]}
    assert (await http.put("/api/v1/tasks/cut", json={"schema": schema})).status_code == 201
    id = await made(caller, task="cut", args={"side": 3}, delay=60)
    for change, words in (
        ({"side": "x"}, "expected integer"),
        ({"side": 0}, "minimum is 1"),
        ({"side": None}, "missing"),
    ):
        refused = await http.patch(f"{RUNS}/{id}", json={"args": change})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/args/side")
        assert words in refused.json()["detail"]
    changed = await http.patch(f"{RUNS}/{id}", json={"args": {"side": 4}})
    assert (changed.status_code, changed.json()["args"]) == (200, {"side": 4})
