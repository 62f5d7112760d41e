"""Flows over HTTP."""

import httpx
import pytest

from rota import Period, Rota
from rota.web import asgi
from tests.web.conftest import HOST, Caller, by_role

FLOWS = "/api/v1/flows"


@pytest.fixture
def app(app: Rota) -> Rota:
    @app.task
    async def load() -> int:
        return 1

    @app.task
    async def report() -> int:
        return 2

    daily = app.flow("daily", once=Period.day(tz="UTC"))
    daily.step(report, after=[daily.step(load)])
    return app


async def test_a_period_is_started_done_and_reset(app: Rota, caller: Caller) -> None:
    http = caller()
    started = await http.post(f"{FLOWS}/daily/start", json={"period": "2026-11-15", "note": "late"})
    assert (started.status_code, [each["reason"] for each in started.json()["items"]]) == (201, ["accepted"] * 2)
    path = f"{FLOWS}/daily/periods/2026-11-15"
    steps = (await http.get(path)).json()["periods"][0]["steps"]
    assert [(each["step"], each["after"]) for each in steps] == [("load", []), ("report", ["load"])]
    async with app:
        await app.flows["daily"].wait("2026-11-15", timeout=30)
    assert (await http.get(path)).json()["complete"] is True
    again = await http.post(f"{path}/rerun", json={"step": "report"})
    assert (again.status_code, [each["step"] for each in again.json()["items"]]) == (202, ["report"])
    gone = await http.delete(path, params={"step": "load"})
    assert (gone.status_code, gone.json()["reset"]) == (202, ["load"])


async def test_flows_and_their_periods_are_listed(caller: Caller) -> None:
    http = caller()
    (flow,) = (await http.get(FLOWS)).json()["items"]
    assert (flow["flow"], flow["absent"]) == ("daily", 2)
    assert (await http.get(f"{FLOWS}/daily")).json()["zone"] == "UTC"
    periods = (await http.get(f"{FLOWS}/daily/periods", params={"last": 3})).json()["items"]
    assert (len(periods), periods[-1]["period"]) == (3, flow["period"])


async def test_wrong_names_are_refused(caller: Caller) -> None:
    http = caller()
    assert (await http.get(f"{FLOWS}/weekly")).status_code == 404
    assert (await http.get(f"{FLOWS}/daily/periods/yesterday")).status_code == 422
    assert (await http.post(f"{FLOWS}/daily/periods/2026-11-15/rerun", json={"step": "x"})).status_code == 422
    assert (await http.delete(f"{FLOWS}/daily/periods/2026-11-15", params={"following": "true"})).status_code == 422
    assert (await caller("viewer:add").get(FLOWS)).json()["items"] == []
    assert (await caller("operator:add").post(f"{FLOWS}/daily/start", json={})).status_code == 404


async def test_why_a_step_waits_links_to_what_it_waits_for(app: Rota, caller: Caller) -> None:
    http = caller()
    started = (await http.post(f"{FLOWS}/daily/start", json={"period": "2026-11-15"})).json()["items"]
    load, report = (each["run"] for each in started)
    await http.post(f"/api/v1/runs/{load}/cancel", json={})
    facts = (await http.get(f"/api/v1/runs/{report}/why")).json()["facts"]
    links = {fact["about"]: fact["link"] for fact in facts}
    assert links["blocked"] == f"/api/v1/runs/{load}"
    assert links["flow"] == f"{FLOWS}/daily/periods/2026-11-15"
    assert links["task"] == "/api/v1/tasks/report"
    for link in links.values():
        assert (await http.get(link)).status_code == 200, link
    service = asgi(app, by_role)
    transport = httpx.ASGITransport(service, root_path="/ops")
    async with httpx.AsyncClient(
        transport=transport, base_url=HOST, headers={"Authorization": "Bearer admin"}
    ) as there:
        mounted = (await there.get("/ops/api/v1/why", params={"subject": report})).json()["facts"]
    assert {fact["about"]: fact["link"] for fact in mounted}["task"] == "/ops/api/v1/tasks/report"
