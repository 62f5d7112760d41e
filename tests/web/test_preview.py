"""The preview over HTTP."""

from rota import DailyAt, Rota
from tests.web.conftest import Caller

PREVIEW = "/api/v1/preview"


async def test_what_the_code_declares_and_the_store_keeps_is_foretold(app: Rota, caller: Caller) -> None:
    @app.task(schedule=DailyAt(3, tz="UTC"))
    async def nightly() -> None: ...

    http = caller()
    body = {"trigger": "daily 03:00 UTC", "task": "add", "args": {"a": 1}}
    await http.put("/api/v1/schedules/report", json=body)
    found = (await http.get(PREVIEW, params={"days": 2, "tz": "Europe/Paris"})).json()
    assert (found["zone"], len(found["fires"])) == ("Europe/Paris", 4)
    assert found["collisions"][0]["schedules"] == ["nightly", "report"]
    narrow = (await caller("viewer:add").get(PREVIEW, params={"days": 2})).json()
    assert {fire["task"] for fire in narrow["fires"]} == {"add"}
    assert (await http.get("/api/v1/schedules/nightly")).status_code == 404, "nothing is changed"


async def test_wrong_zones_and_long_times_are_refused(caller: Caller) -> None:
    for wrong in ({"tz": "Mars/Olympus"}, {"days": "0"}, {"days": "1000"}):
        assert (await caller().get(PREVIEW, params=wrong)).status_code == 422
