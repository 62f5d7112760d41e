"""Workers, marks, decisions, stats and why over HTTP."""

import asyncio
import logging
import threading
from typing import Any

import httpx
import pytest

from rota import Activity, Rota
from rota.store import ClaimRequest, Report, Stall, Tally
from rota.web import asgi
from tests.requirement import requirement
from tests.web.conftest import HOST, Caller, told

API = "/api/v1"


async def test_a_worker_is_seen_quietened_and_stopped(app: Rota, caller: Caller) -> None:
    http = caller()
    id = (await http.post(f"{API}/runs", json={"task": "add", "args": {"a": 1}})).json()["run"]
    async with app:
        await http.get(f"{API}/runs/{id}", params={"wait": 30})
        (name,) = [each["name"] for each in (await http.get(f"{API}/workers")).json()["items"]]
        assert (await http.get(f"{API}/workers/{name}")).json()["standing"] == "idle"
        quiet = await http.post(f"{API}/workers/{name}/quiet", json={"note": "look"})
        assert quiet.status_code == 202
        assert told(quiet) == {"worker": name, "changed": True, "quiet": True, "stop": False}
        assert (await http.get(f"{API}/workers/{name}")).json()["quiet"] is True
        assert (await http.post(f"{API}/workers/{name}/resume", json={})).json()["quiet"] is False
        assert (await caller("operator:add").post(f"{API}/workers/{name}/stop", json={})).status_code == 403
        assert (await caller("viewer:add").get(f"{API}/workers/{name}")).json()["tasks"] == ["add"]
        assert (await caller("viewer:other").get(f"{API}/workers")).json()["items"] == []
        assert (await http.post(f"{API}/workers/{name}/stop", json={})).json()["stop"] is True
    assert (await http.get(f"{API}/workers/nobody")).status_code == 404


async def test_a_pull_worker_is_reached_by_its_name_with_that_of_its_credential(app: Rota, caller: Caller) -> None:
    http = caller()
    claim = {"worker": "w1", "n": 1, "tasks": ["add"], "free": 1}
    assert (await http.post(f"{API}/claim", json=claim)).status_code == 200
    (name,) = [each["name"] for each in (await http.get(f"{API}/workers")).json()["items"]]
    assert name == "admin/w1"
    for spelled in (name, "admin%2Fw1"):
        assert (await http.get(f"{API}/workers/{spelled}")).json()["name"] == name
        assert (await http.post(f"{API}/workers/{spelled}/quiet", json={})).json()["quiet"] is True


async def test_stalls_are_told_and_their_stacks_only_to_readers_of_payloads(app: Rota, caller: Caller) -> None:
    calls = (Stall("call", 9.5, "in add", "add", "r1"), Stall("call", 1.0, "in greet", "greet", "r2"))
    blocked = Stall("loop", 2.5, "in sleep", over_for=3.0)
    report = Report(stalls=(*calls, blocked), overdue=2)
    store = await app.client().store()
    await store.claim(ClaimRequest("w", 1, ["add", "greet"], 0, 30, report))

    async def seen(role: str) -> list[tuple[object, ...]]:
        (worker,) = (await caller(role).get(f"{API}/workers")).json()["items"]
        return [(each["what"], each["task"], each["run"], each["stack"]) for each in worker["stalls"]]

    whole = [("call", "add", "r1", "in add"), ("call", "greet", "r2", "in greet"), ("loop", None, None, "in sleep")]
    assert await seen("operator") == whole
    assert await seen("viewer") == [(*each[:3], None) for each in whole]
    assert await seen("operator:add") == [whole[0], ("loop", None, None, None)], "other tasks are none of its business"


async def test_marks_are_set_listed_and_forgotten(caller: Caller) -> None:
    http, path = caller(), f"{API}/marks/add/daily/load@2026-11-15"
    assert (await http.put(path, json={"note": "done by hand"})).status_code == 204
    assert (await http.put(f"{API}/marks/greet/ada", json={})).status_code == 204
    found = (await http.get(f"{API}/marks", params={"task": "add"})).json()
    assert ([each["key"] for each in found["items"]], found["more"]) == (["daily/load@2026-11-15"], False)
    assert (await http.get(f"{API}/marks", params={"limit": 1})).json()["more"] is True
    assert [each["task"] for each in (await caller("viewer:greet").get(f"{API}/marks")).json()["items"]] == ["greet"]
    assert (await caller("operator:greet").delete(path)).status_code == 403
    assert (await http.delete(path)).status_code == 204
    assert (await http.delete(path)).status_code == 404


async def test_a_decision_says_who_and_why(caller: Caller) -> None:
    http = caller("operator")
    await http.post(f"{API}/tasks/add/pause", json={"note": "too many"})
    await http.post(f"{API}/tasks/greet/pause", json={})
    (found,) = (await http.get(f"{API}/decisions", params={"task": "add", "reason": "paused"})).json()["items"]
    assert (found["by"], found["note"], found["count"]) == ("operator", "too many", 1)
    assert (await http.get(f"{API}/decisions", params={"by": "ada"})).json()["items"] == []
    assert (await http.get(f"{API}/decisions", params={"since": "2100-01-01T00:00:00Z"})).json()["items"] == []
    seen = (await caller("viewer:greet").get(f"{API}/decisions")).json()["items"]
    assert {each["task"] for each in seen} == {"greet"}


async def test_one_key_of_a_task_is_paused_and_resumed(caller: Caller) -> None:
    http = caller("operator")
    assert told(await http.post(f"{API}/tasks/add/pause", json={"key": "7"})) == {"changed": True}
    assert (await http.get(f"{API}/tasks/add")).json()["paused_keys"] == ["7"]
    assert told(await http.post(f"{API}/tasks/add/resume", json={"key": "7"})) == {"changed": True}


async def test_a_task_is_paused_until_an_instant(caller: Caller) -> None:
    http, path = caller("operator"), f"{API}/tasks/add/pause"
    assert told(await http.post(path, json={"until": "2100-01-01T00:00:00Z", "note": "disk"})) == {"changed": True}
    found = (await http.get(f"{API}/tasks/add")).json()
    assert (found["paused"], found["paused_until"]) == (True, "2100-01-01T00:00:00.000000Z")
    for wrong in ({"until": "2020-01-01T00:00:00Z"}, {"until": "2100-01-01T00:00:00Z", "key": "7"}):
        assert (await http.post(path, json=wrong)).status_code == 422
    assert (await http.post(path, json={"until": "2100-01-01T00:00:00"})).status_code == 422, "without a zone"
    assert (await http.post(f"{API}/tasks/add/resume", json={"until": "2100-01-01T00:00:00Z"})).status_code == 422
    assert told(await http.post(path, json={})) == {"changed": True}
    assert (await http.get(f"{API}/tasks/add")).json()["paused_until"] is None


@requirement("0.12")
async def test_stats_count_what_was_done(app: Rota, caller: Caller) -> None:
    http = caller()
    id = (await http.post(f"{API}/runs", json={"task": "add", "args": {"a": 1}})).json()["run"]
    async with app:
        await http.get(f"{API}/runs/{id}", params={"wait": 30})
    stats = (await http.get(f"{API}/stats", params={"task": "add"})).json()["items"]
    assert sum(each["succeeded"] for each in stats) == 1
    assert stats[-1]["run_p50"] is not None
    assert (await caller("viewer:greet").get(f"{API}/stats")).json()["items"] == []
    assert (await http.get(f"{API}/stats", params={"minutes": 10_000_000})).status_code == 422


@requirement("0.16")
async def test_figures_of_past_runs_are_grouped_by_task_and_origin_by_the_day(app: Rota, caller: Caller) -> None:
    http, store = caller(), await app.client().store()
    tallies = (
        Tally("add", 2, 1, durations={20: 3}, ran=3_000_000, origin="submit"),
        Tally("add", 4, origin="schedule"),
        Tally("greet", 1, cancelled=1, origin="submit"),
    )
    await store.claim(ClaimRequest("ada", 1, ["add"], 0, 30, Report(tallies=tallies)))

    async def rows(**params: str | int | list[str]) -> list[dict[str, Any]]:
        answer = await http.get(f"{API}/stats", params={"every": "day", "minutes": 400 * 24 * 60, **params})
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def shown(found: list[dict[str, Any]]) -> list[tuple[object, ...]]:
        return [(row["task"], row["origin"], row["succeeded"], row["run_seconds"]) for row in found]

    both = ["task", "origin"]
    each = [("add", "schedule", 4, 0.0), ("add", "submit", 2, 3.0), ("greet", "submit", 1, 0.0)]
    assert shown(await rows(group_by=both)) == each
    assert shown(await rows(group_by=both, every="all")) == each
    assert shown(await rows()) == [("add", None, 6, 3.0), ("greet", None, 1, 0.0)]
    assert shown(await rows(group_by=["origin"])) == [(None, "schedule", 4, 0.0), (None, "submit", 3, 3.0)]
    assert shown(await rows(origin="submit", task="add")) == [("add", None, 2, 3.0)]
    assert (await rows())[0]["minute"].endswith("T00:00:00.000000Z")
    too_long = await http.get(f"{API}/stats", params={"every": "hour", "minutes": 61 * 24 * 60})
    assert (too_long.status_code, too_long.json()["errors"][0]["pointer"]) == (422, "?minutes")


async def test_a_touch_may_name_its_key(app: Rota, caller: Caller) -> None:
    @app.task(key="{user}", activity=Activity(after=3600))
    async def ping(user: str) -> None: ...

    http = caller()
    url = f"{API}/tasks/ping/touch"
    made = (await http.post(url, json={"args": {"user": "ada"}, "key": "bob"})).json()
    again = (await http.post(url, json={"args": {"user": "eve"}, "key": "bob"})).json()
    other = (await http.post(url, json={"args": {"user": "ada"}})).json()
    assert made["accepted"]
    assert made["run"] == again["run"] != other["run"]
    assert (await http.get(f"{API}/runs/{made['run']}")).json()["key"] == "bob"
    assert (await http.post(url, json={"args": {}, "key": "bob"})).status_code == 422
    assert (await http.post(url, json={"args": {"user": "ada"}, "key": "a\nb"})).status_code == 422
    unknown = await http.post(f"{API}/tasks/nobody/touch", json={"key": "bob"})
    assert unknown.json()["reason"] == "unknown_task"
    assert (await http.post(f"{API}/tasks/add/touch", json={"args": {"a": 1}, "key": "k"})).json()[
        "reason"
    ] == "no_activity"


async def test_readiness_may_ask_for_a_fresh_claim(app: Rota, caller: Caller) -> None:
    http = caller(None)
    assert (await http.get("/ready", params={"max_age": 5})).status_code == 200, "it has no engine"
    async with app:
        assert (await http.get("/ready", params={"max_age": 3600})).status_code == 200
        assert (await http.get("/ready", params={"max_age": 1e-9})).status_code == 503
    assert (await http.get("/ready", params={"max_age": 0})).status_code == 422


class Ear(logging.Handler):
    """Hears that the heart has given the event loop up."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "its leases are no longer renewed" in record.getMessage():
            self.heard.set()


async def test_a_process_whose_engine_is_blocked_for_too_long_is_not_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a server of threads, the engine has a loop of its own: the server goes on answering while that stands."""
    monkeypatch.setenv("ROTA_SILENCE", "1")
    app, blocked, free, ear = Rota("memory://", lease=1), threading.Event(), threading.Event(), Ear()

    @app.task
    async def block() -> None:
        blocked.set()
        free.wait(60)

    async def work() -> None:
        async with app:
            await (await block.submit()).result()

    logging.getLogger("rota").addHandler(ear)
    engine = threading.Thread(target=asyncio.run, args=(work(),))
    transport = httpx.ASGITransport(asgi(app))
    try:
        async with httpx.AsyncClient(transport=transport, base_url=HOST) as http:
            assert (await http.get("/health")).status_code == 200
            engine.start()
            assert await asyncio.to_thread(blocked.wait, 60)
            assert await asyncio.to_thread(ear.heard.wait, 60)
            answer = await http.get("/health")
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
            free.set()
            await asyncio.to_thread(engine.join, 60)
            assert (await http.get("/health")).status_code == 200
    finally:
        free.set()
        logging.getLogger("rota").removeHandler(ear)


async def test_me_names_the_role(caller: Caller) -> None:
    for role in ("viewer", "operator", "admin"):
        assert (await caller(role).get(f"{API}/me")).json()["role"] == role


async def test_why_answers_for_anything(caller: Caller) -> None:
    http = caller()
    body = {"trigger": "daily 09:00", "task": "add", "args": {"a": 1}}
    await http.put(f"{API}/schedules/report", json=body)
    id = (await http.post(f"{API}/runs", json={"task": "add", "args": {"a": 1}})).json()["run"]
    for subject, kind in (("add", "task"), ("report", "schedule"), (id, "run of add")):
        found = (await http.get(f"{API}/why", params={"subject": subject})).json()
        assert (found["kind"], bool(found["answer"])) == (kind, True)
        assert (await caller("viewer:add").get(f"{API}/why", params={"subject": subject})).status_code == 200
        assert (await caller("viewer:greet").get(f"{API}/why", params={"subject": subject})).status_code == 404
        links = {fact["about"]: fact["link"] for fact in found["facts"]}
        assert {"task", "workers"} <= links.keys()
        for about, link in links.items():
            assert (await http.get(link)).status_code == 200, f"{subject}: {about} links to {link}"
    assert (await http.get(f"{API}/why", params={"subject": "nothing"})).status_code == 404
    assert (await http.get(f"{API}/why")).status_code == 422
