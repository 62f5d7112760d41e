"""The doctor over HTTP."""

from pathlib import Path

from rota import Rota
from rota.web.api.doctor import CHECK
from tests.web.conftest import Caller

DOCTOR = "/api/v1/doctor"


async def test_checks_come_with_advice(caller: Caller) -> None:
    http = caller("operator")
    await http.post("/api/v1/runs", json={"task": "add", "args": {"a": 1}})
    checks = {each["check"]: each for each in (await http.get(DOCTOR)).json()["items"]}
    assert (checks["store"]["verdict"], checks["app"]["detail"]) == ("ok", "it has 2 tasks")
    assert (checks["workers"]["verdict"], bool(checks["workers"]["advice"])) == ("warn", True)
    assert set(checks["store"]) == set(CHECK["properties"])
    assert (await caller("viewer").get(DOCTOR)).status_code == 403


async def test_the_file_of_a_store_is_checked_too(app: Rota, caller: Caller, tmp_path: Path) -> None:
    with app.bound_to(f"sqlite:///{tmp_path}/rota.db"):
        async with app.client():
            checks = [each["check"] for each in (await caller().get(DOCTOR)).json()["items"]]
    assert "writable" in checks
    assert len(checks) > 8
