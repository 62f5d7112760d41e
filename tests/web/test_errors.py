"""Errors by group, the time line, and the number for autoscalers."""

from datetime import UTC, datetime

from rota import Rota
from rota.testing import drain
from rota.views.errors import pattern_of
from rota.views.timeline import Call, Segment, Window, timeline_rows
from tests.web.conftest import Caller, told

API = "/api/v1"


def test_numbers_addresses_and_ids_do_not_make_another_error() -> None:
    one = "row 17 at 0x7f3a of 123e4567-e89b-12d3-a456-426614174000\nafter 1.5 s"
    other = "row 4 at 0xff of 99999999-e89b-12d3-a456-aaaaaaaaaaaa after 20 s"
    assert pattern_of(one) == pattern_of(other) == "row # at # of # after # s"


async def test_failures_are_grouped_by_what_went_wrong(app: Rota, caller: Caller) -> None:
    @app.task
    async def parse(row: int) -> None:
        raise ValueError(f"row {row} is bad") if row else KeyError("row")

    runs = [(await parse.submit(row)).id for row in (1, 2, 0, 3)]
    await drain(app)
    first, second = (await caller("viewer").get(f"{API}/errors")).json()["items"]
    assert (first["task"], first["type"], first["count"]) == ("parse", "ValueError", 3)
    assert (first["message"], second["type"], second["count"]) == ("row # is bad", "KeyError", 1)
    assert (set(first["runs"]), sum(first["spark"])) == ({runs[0], runs[1], runs[3]}, 3)
    for role, query in (("viewer", {"since": "2999-01-01T00:00:00Z"}), ("viewer:add", {}), ("viewer", {"task": "add"})):
        assert (await caller(role).get(f"{API}/errors", params=query)).json()["items"] == []


async def test_the_time_line_shows_what_ran_and_what_will_fire(app: Rota, caller: Caller) -> None:
    @app.task(schedule="every 10 minutes")
    async def tick() -> None: ...

    await app.tasks["add"].submit(1)
    await app.tasks["add"].submit(2)
    await drain(app)
    found = (await caller("viewer").get(f"{API}/timeline", params={"px": 100})).json()
    rows = {row["name"]: row["segments"] for row in found["items"]}
    assert [(part["outcome"], part["count"]) for part in rows["add"]] == [("succeeded", 2)]
    assert {part["outcome"] for part in rows["tick"]} == {"planned"}
    assert sum(part["count"] for part in rows["tick"]) == 6
    assert all(50 <= part["left"] < part["right"] <= 100 for part in rows["tick"])
    workers = (await caller("viewer").get(f"{API}/timeline", params={"by": "worker", "px": 100})).json()["items"]
    assert sum(part["count"] for row in workers for part in row["segments"]) == 2
    limited = (await caller("viewer:tick").get(f"{API}/timeline")).json()["items"]
    assert [row["name"] for row in limited] == ["tick"]
    now = datetime.now(UTC).isoformat()
    assert (await caller("viewer").get(f"{API}/timeline", params={"from": now, "to": now})).status_code == 422


def test_calls_are_merged_to_pixels_by_outcome() -> None:
    calls = [Call("a", at, at + 0.4, "succeeded") for at in range(100)] + [Call("a", 50, 60, "failed")]
    calls += [Call("a", 400, 410, "succeeded", 7), Call("gone", 2000, 2001, "failed")]
    (row,) = timeline_rows(calls, Window(0, 1000, 100))
    assert row.segments == [
        Segment(0, 10, "succeeded", 100),
        Segment(5, 7, "failed", 1),
        Segment(40, 42, "succeeded", 7),
    ]


async def test_the_scale_counts_what_is_due_and_what_runs(app: Rota, caller: Caller) -> None:
    for n in range(3):
        await app.tasks["add"].submit(n)
    await app.tasks["add"].using(delay=60).submit(9)
    assert (await caller("viewer").get(f"{API}/scale", params={"task": "add"})).json()["value"] == 3
    assert told(await caller("viewer").get(f"{API}/scale")) == {"value": 3, "due": 3, "running": 0, "more": False}
    for query in ({"task": "greet"}, {"queue": "images"}):
        assert (await caller("viewer").get(f"{API}/scale", params=query)).json()["value"] == 0
    assert (await caller("viewer:greet").get(f"{API}/scale", params={"task": "add"})).json()["value"] == 0
