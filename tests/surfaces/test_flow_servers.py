"""The commands about flows and marks on the stores that are servers: one story, the same answers."""

import pytest

from tests.faults.conftest import in_place
from tests.server_fixtures import Servers
from tests.surfaces.called import Called
from tests.surfaces.days import Day
from tests.surfaces.timetables import beside


@pytest.mark.parametrize("kind", ["sqlite", "valkey-9", "postgres-18"])
def test_a_day_fails_is_explained_reset_and_done(
    rota: Called, servers: Servers, namespace: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rota.url = rota.url if kind == "sqlite" else in_place(servers.get(kind).url, namespace)
    day = Day(rota, expect="07:00")
    beside(monkeypatch, day.app)
    day.failing.add("left")
    period = day.work()

    (listed,) = rota.json("flows", "ls")
    why = rota.json("flows", "why", "day", "join")
    runs = rota.json("runs", "ls", "--flow", "day")
    marked = [row["key"] for row in rota.json("marks", "ls", "load")]
    preview = rota.json("preview", "--days", "2")

    assert (listed["done"], listed["failed"], listed["blocked"]) == (2, 1, 1)
    assert why["answer"].startswith(f"blocked by day/left@{period} (task left): it failed")
    assert rota.json("why", runs[0]["id"])["answer"].startswith(f"blocked by day/left@{period} (task left): it failed")
    assert [run["task"] for run in runs] == ["join", "right", "left", "load"]
    assert marked == [f"day/load@{period}"]
    assert {each["schedule"] for each in preview["deadlines"]} == {"expect:day/join"}

    assert len(rota.json("reset", "day", "--period", period)["reset"]) == 3, "what has failed is marked as well"
    day.failing.clear()
    day.work(period)
    (done,) = rota.json("flows", "show", "day", "--period", period)["periods"]
    assert done["done"] is True
    rota("schedules", "put", "dawn", "daily 05:00", "load", "--expect", "07:00")
    rota("schedules", "delete", "dawn")
    assert {each["id"] for each in rota.json("schedules", "ls")} == {"day", "expect:day/join"}
