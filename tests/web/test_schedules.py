"""Schedules and triggers over HTTP."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from rota import DailyAt, Rota
from rota.store import ClaimRequest, Report, Tally
from rota.store.reports import bucket
from rota.testing import StoreClock
from tests.requirement import requirement
from tests.web.conftest import Caller, told

SCHEDULES = "/api/v1/schedules"
REPORT = {"trigger": "daily 09:00 Europe/Paris", "task": "add", "args": {"a": 1}}


@requirement("1.2")
async def test_a_schedule_is_added_read_replaced_and_deleted(caller: Caller) -> None:
    http = caller()
    made = await http.put(f"{SCHEDULES}/report", json=REPORT, headers={"If-None-Match": "*"})
    assert (made.status_code, made.json()["words"], made.json()["findings"]) == (
        201,
        "every day at 09:00, Paris time",
        [],
    )
    read = await http.get(f"{SCHEDULES}/report")
    assert (read.headers["ETag"], read.json()["args"]) == (made.headers["ETag"], {"a": 1})
    assert read.json()["upcoming"][0] == read.json()["next_at"]
    changed = await http.put(
        f"{SCHEDULES}/report", json={**REPORT, "args": {"a": 2}}, headers={"If-Match": read.headers["ETag"]}
    )
    assert (changed.status_code, changed.json()["args"]) == (200, {"a": 2})
    assert changed.headers["ETag"] != read.headers["ETag"]
    assert (await http.delete(f"{SCHEDULES}/report", headers={"If-Match": '"0"'})).status_code == 412
    assert (await http.delete(f"{SCHEDULES}/report", headers={"If-Match": changed.headers["ETag"]})).status_code == 204
    assert (await http.get(f"{SCHEDULES}/report")).status_code == 404


async def test_nobody_replaces_a_version_that_they_have_not_read(caller: Caller) -> None:
    http, path = caller(), f"{SCHEDULES}/reports/of/ada"
    assert (await http.put(path, json=REPORT, headers={"If-Match": '"1"'})).status_code == 412
    first = await http.put(path, json=REPORT)
    assert first.status_code == 201
    unconditional = await http.put(path, json=REPORT)
    assert (unconditional.status_code, unconditional.headers["ETag"]) == (428, first.headers["ETag"])
    assert (await http.put(path, json=REPORT, headers={"If-None-Match": "*"})).status_code == 412
    assert (await http.put(path, json=REPORT, headers={"If-Match": '"77"'})).status_code == 412
    await http.post(f"{path}/pause", json={"note": "maintenance"})
    assert (await http.put(path, json=REPORT, headers={"If-Match": first.headers["ETag"]})).status_code == 412


@pytest.mark.parametrize(
    "options",
    [{"overlap": "buffer", "buffer": 5, "times": 3}, {"breaker": {"failures": 4, "cool_down": 600.0}}],
    ids=["buffer", "breaker"],
)
async def test_what_was_read_of_a_schedule_can_be_put_back(caller: Caller, options: dict[str, Any]) -> None:
    http, path = caller(), f"{SCHEDULES}/pages"
    assert (await http.put(path, json={**REPORT, **options})).status_code == 201
    read = await http.get(path)
    kept = {name: read.json()[name] for name in options}
    assert kept == options
    again = await http.put(path, json={**REPORT, **kept, "args": {"a": 2}}, headers={"If-Match": read.headers["ETag"]})
    assert {name: again.json()[name] for name in options} == options


async def test_counts_of_a_schedule_have_bounds(caller: Caller) -> None:
    http = caller()
    for wrong in ({"buffer": 5}, {"overlap": "buffer", "buffer": 0}, {"times": 10**12}, {"breaker": {"failures": 0}}):
        refused = await http.put(f"{SCHEDULES}/other", json={**REPORT, **wrong})
        assert refused.status_code == 422, wrong


async def test_of_two_writers_at_once_one_wins(caller: Caller) -> None:
    http, path = caller(), f"{SCHEDULES}/report"
    bodies = [{**REPORT, "args": {"a": number}} for number in (1, 2)]
    made = await asyncio.gather(*(http.put(path, json=body, headers={"If-None-Match": "*"}) for body in bodies))
    assert sorted(each.status_code for each in made) == [201, 412]
    tag = {"If-Match": (await http.get(path)).headers["ETag"]}
    bodies = [{**REPORT, "args": {"a": number}} for number in (3, 4)]
    both = await asyncio.gather(*(http.put(path, json=body, headers=tag) for body in bodies))
    assert sorted(each.status_code for each in both) == [200, 412]
    won = next(each for each in both if each.status_code == 200)
    assert (await http.get(path)).json()["args"] == won.json()["args"]


async def test_a_pause_ends_by_itself(caller: Caller) -> None:
    http, path = caller(), f"{SCHEDULES}/report"
    await http.put(path, json=REPORT)
    assert (await http.get(path)).json()["paused_until"] is None
    paused = await http.post(f"{path}/pause", json={"until": "2100-01-01T00:00:00Z"})
    assert (paused.status_code, told(paused)) == (200, {"changed": True})
    shown = (await http.get(path)).json()
    assert (shown["state"], shown["paused_until"]) == ("active", "2100-01-01T08:00:00.000000Z")
    assert shown["next_at"] == shown["paused_until"]
    assert (await http.post(f"{path}/pause", json={"until": "2100-01-01T00:00:00"})).status_code == 422
    assert told(await http.post(f"{path}/resume", json={})) == {"changed": True}
    assert (await http.get(path)).json()["paused_until"] is None


async def test_a_schedule_of_the_code_is_changed_in_the_code(app: Rota, caller: Caller) -> None:
    @app.task(schedule=DailyAt(3, tz="UTC"))
    async def nightly() -> None: ...

    async with app:
        pass
    http = caller()
    tag = (await http.get(f"{SCHEDULES}/nightly")).headers["ETag"]
    taken = await http.put(f"{SCHEDULES}/nightly", json=REPORT, headers={"If-Match": tag})
    assert (taken.status_code, app.settings.name in taken.json()["detail"]) == (409, True)
    assert (await http.delete(f"{SCHEDULES}/nightly")).status_code == 409
    assert told(await http.post(f"{SCHEDULES}/nightly/pause", json={})) == {"changed": True}


async def test_a_wrong_schedule_is_refused_with_what_is_wrong(caller: Caller) -> None:
    http = caller()
    for body, pointer in (
        ({**REPORT, "trigger": "sometimes"}, "/trigger"),
        ({**REPORT, "trigger": "0 0 30 2 *"}, "/trigger"),
        ({**REPORT, "args": {"c": 1}}, "/args/a"),
        ({**REPORT, "args": {"a": "***"}}, "/args"),
        ({**REPORT, "when": "never"}, "/when"),
    ):
        answer = await http.put(f"{SCHEDULES}/wrong", json=body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer), body
    assert (await http.put(f"{SCHEDULES}/wrong", json={**REPORT, "task": "ad"})).status_code == 404
    assert (await http.get(f"{SCHEDULES}/wrong")).status_code == 404


async def test_schedules_are_listed_by_filter_a_page_at_a_time(caller: Caller) -> None:
    http = caller()
    for name in ("a", "b", "c"):
        await http.put(f"{SCHEDULES}/{name}", json=REPORT)
    await http.put(f"{SCHEDULES}/d", json={**REPORT, "task": "greet", "args": {"user": "ada"}})
    await http.post(f"{SCHEDULES}/b/pause", json={})
    page = (await http.get(SCHEDULES, params={"limit": 3})).json()
    rest = (await http.get(SCHEDULES, params={"limit": 3, "cursor": page["next"]})).json()
    assert ([each["id"] for each in [*page["items"], *rest["items"]]], rest["next"]) == (["a", "b", "c", "d"], None)

    async def ids(role: str = "admin", **params: str) -> list[str]:
        return [each["id"] for each in (await caller(role).get(SCHEDULES, params=params)).json()["items"]]

    assert (await ids(paused="true"), await ids(task="greet"), await ids(q="GREE")) == (["b"], ["d"], ["d"])
    assert await ids("viewer:greet") == ["d"]
    assert (await caller("viewer:greet").get(f"{SCHEDULES}/a")).status_code == 404
    assert (await caller("viewer").get(f"{SCHEDULES}/d")).json()["args"] is None


async def test_runs_are_made_now_and_for_past_ticks(app: Rota, caller: Caller) -> None:
    http = caller()
    await http.put(f"{SCHEDULES}/hourly", json={**REPORT, "trigger": "0 * * * *", "overlap": "allow"})
    now = await http.post(f"{SCHEDULES}/hourly/run-now", json={})
    assert (now.status_code, now.headers["Location"]) == (201, f"/api/v1/runs/{now.json()['run']}")
    later = StoreClock(app.backend).move(hours=3)
    span = {"from": datetime(2020, 1, 1, tzinfo=UTC).isoformat(), "to": later.isoformat()}
    too_much = await http.post(f"{SCHEDULES}/hourly/backfill", json=span)
    assert (too_much.status_code, "1,000" in too_much.json()["detail"]) == (422, True)
    ticks = (await http.get(f"{SCHEDULES}/hourly/ticks", params={"limit": 3})).json()["items"]
    span["from"] = ticks[0]["nominal"]
    dry = await http.post(f"{SCHEDULES}/hourly/backfill", json=span)
    assert (dry.status_code, {item["run"] for item in dry.json()["items"]}) == (200, {None})
    real = await http.post(f"{SCHEDULES}/hourly/backfill", json={**span, "dry_run": False})
    assert (real.status_code, [item["created"] for item in real.json()["items"]]) == (202, [True, True, True])
    again = await http.post(f"{SCHEDULES}/hourly/backfill", json={**span, "dry_run": False})
    assert [item["created"] for item in again.json()["items"]] == [False, False, False]


async def test_a_run_in_the_way_of_run_now_is_named(caller: Caller) -> None:
    http = caller()
    await http.put(f"{SCHEDULES}/report", json=REPORT)
    first = (await http.post(f"{SCHEDULES}/report/run-now", json={})).json()["run"]
    again = await http.post(f"{SCHEDULES}/report/run-now", json={})
    assert (again.status_code, again.json()["run"]) == (409, first)


async def test_ticks_are_past_with_their_runs_and_to_come(app: Rota, caller: Caller) -> None:
    http = caller()
    await http.put(f"{SCHEDULES}/hourly", json={**REPORT, "trigger": "every 1h"})
    StoreClock(app.backend).move(hours=1, minutes=1)
    async with app:
        waiting = {"task": "add", "state": "succeeded"}
        while not (await http.get("/api/v1/runs", params=waiting)).json()["items"]:
            await app.client().news(1.0)
    ticks = (await http.get(f"{SCHEDULES}/hourly/ticks", params={"limit": 4})).json()["items"]
    assert [tick["past"] for tick in ticks] == [True, False, False, False]
    assert (ticks[0]["outcome"], ticks[0]["run"] is None) == ("succeeded", False)
    few = await http.get(f"{SCHEDULES}/hourly/ticks", params={"from": ticks[1]["nominal"], "to": ticks[2]["nominal"]})
    assert [tick["nominal"] for tick in few.json()["items"]] == [ticks[1]["nominal"], ticks[2]["nominal"]]


async def test_a_trigger_is_explained(caller: Caller) -> None:
    body = {"text": "daily 02:30", "tz": "Europe/Paris", "after": "2026-03-28T12:00:00Z", "count": 2}
    found = (await caller("viewer").post("/api/v1/triggers/explain", json=body)).json()
    assert (found["zone"], found["from"], len(found["fires"])) == ("Europe/Paris", "2026-03-28T12:00:00.000000Z", 2)
    assert found["findings"], "the clock is changed that night"
    for wrong in ({"text": "sometimes"}, {"text": "daily 02:30", "tz": "../etc/passwd"}):
        assert (await caller().post("/api/v1/triggers/explain", json=wrong)).status_code == 422


async def test_the_text_of_a_trigger_and_its_words_are_bounded(caller: Caller) -> None:
    http = caller()
    long = "0 0 * * * excluding " + " excluding ".join(["@daily"] * 20)
    assert len(long) > 256
    for method, path, body, pointer in (
        ("POST", "/api/v1/triggers/explain", {"text": long}, "/text"),
        ("PUT", f"{SCHEDULES}/s", REPORT | {"trigger": long}, "/trigger"),
    ):
        answer = await http.request(method, path, json=body)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    odd = ",".join(str(minute) for minute in range(0, 60, 7))
    hours = ",".join(str(hour) for hour in range(0, 24, 5))
    days = ",".join(str(day) for day in range(1, 31, 4))
    for text in (f"{odd} {hours} {days} 1,4,9 *", " or ".join(["daily 09:07"] * 15)):
        explained = await http.post("/api/v1/triggers/explain", json={"text": text, "count": 1})
        assert len(explained.json()["words"]) < 1000, text


async def test_a_list_of_schedules_has_their_last_firings_on_request(caller: Caller) -> None:
    http = caller("operator")
    await http.put("/api/v1/schedules/nightly", json={"trigger": "daily 02:30", "task": "add", "args": {"a": 1}})
    plain = (await http.get("/api/v1/schedules")).json()["items"]
    full = (await http.get("/api/v1/schedules", params={"last": 30})).json()["items"]
    assert "firings" not in plain[0]
    assert full == [{**full[0], "id": "nightly", "firings": []}]
    assert (await http.get("/api/v1/schedules", params={"last": 1000})).status_code == 422


async def test_a_schedule_that_is_read_and_put_again_keeps_its_policies(caller: Caller) -> None:
    http, path = caller(), f"{SCHEDULES}/careful"
    own = {"limit": 7, "backoff": "linear", "delay": 3.0, "max_delay": 60.0, "jitter": 0.0, "factor": 2.0}
    body = {**REPORT, "timeout": 30, "retry": own, "lost": "fail", "expect": "10:00"}
    made = await http.put(path, json=body)
    assert made.status_code == 201, made.text
    read = (await http.get(path)).json()
    assert (read["timeout"], read["lost"]) == (30, "fail")
    assert {name: read["retry"][name] for name in own} == own
    assert "10:00" in read["expect"]
    again = {**REPORT, "args": {"a": 9}, "timeout": read["timeout"], "lost": read["lost"], "expect": read["expect"]}
    again["retry"] = {name: read["retry"][name] for name in own}
    changed = await http.put(path, json=again, headers={"If-Match": made.headers["ETag"]})
    assert changed.status_code == 200, changed.text
    kept = ("timeout", "retry", "lost", "expect")
    assert {name: changed.json()[name] for name in kept} == {name: read[name] for name in kept}
    assert changed.json()["args"] == {"a": 9}
    dropped = await http.put(path, json=REPORT, headers={"If-Match": changed.headers["ETag"]})
    assert [dropped.json()[name] for name in kept] == [None, None, "retry", None]
    wrong = await http.put(f"{SCHEDULES}/odd", json={**REPORT, "retry": {"backoff": "sideways"}})
    assert (wrong.status_code, "sideways" in wrong.text) == (422, True)


async def test_a_schedule_is_read_with_what_may_be_wrong_with_it(caller: Caller, app: Rota) -> None:
    http = caller()
    night = {"trigger": "daily 02:30 Europe/Berlin", "task": "add", "args": {"a": 1}}
    await http.put(f"{SCHEDULES}/night", json=night)
    found = {each["code"]: each for each in (await http.get(f"{SCHEDULES}/night")).json()["findings"]}
    assert {"clock-gap", "clock-fold"} <= set(found)
    assert "the clock in Europe/Berlin goes forward from 02:00 to 03:00" in found["clock-gap"]["message"]
    often = {"trigger": "every 5s", "task": "add", "args": {"a": 1}}
    assert (await http.put(f"{SCHEDULES}/often", json=often)).json()["findings"] == []
    counted = Report(tallies=(Tally("add", 1, durations={bucket(8.0): 1}),))
    store = await app.client().store()
    await store.claim(ClaimRequest("ada", 1, ["add"], 0, 30, counted))
    (slow,) = (await http.get(f"{SCHEDULES}/often")).json()["findings"]
    assert (slow["code"], "fires can be 5 seconds apart" in slow["message"]) == ("overrun", True)


async def test_a_trigger_is_explained_by_the_clock_of_the_place_that_it_names(caller: Caller) -> None:
    after = "2027-01-10T00:00:00Z"
    told = (
        await caller().post("/api/v1/triggers/explain", json={"text": "daily 02:30 Europe/Berlin", "after": after})
    ).json()
    assert (told["zone"], told["fires"][0]["local"]) == ("Europe/Berlin", "2027-01-10T02:30:00+01:00")
    other = {"text": "daily 02:30 Europe/Berlin", "after": after, "tz": "Asia/Tokyo"}
    shown = (await caller().post("/api/v1/triggers/explain", json=other)).json()
    assert (shown["zone"], shown["fires"][0]["local"]) == ("Asia/Tokyo", "2027-01-10T10:30:00+09:00")
