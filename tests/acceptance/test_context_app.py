"""The example of the first source document, row by row: its API and its app in virtual time, and once as a server."""

import asyncio
import os
import re
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from examples.context_app import api as site
from examples.context_app.app import USER, app, data_cleanup, hierarchy_summary
from examples.context_app.memories import Model, the_model
from examples.context_app.pulling import TRANSCRIBE, transcribe
from examples.context_app.story import NOON, Story, a_day
from rota import Rota
from rota.stores.memory import MemoryBackend
from rota.web import Tokens
from tests.processes import Process
from tests.requirement import requirement

ROOT = Path(__file__).parents[2]
TOKEN = "rota_0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
API = "/rota/api/v1"


@pytest.fixture(autouse=True)
def _let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "TOKENS", Tokens(TOKEN))


def played(playing: Callable[[Story], Awaitable[object]], hours: float = 3, workers: int = 1) -> Story:
    return Story(hours).play(playing, workers)


def seconds(story: Story, task: Any) -> list[float]:
    """When runs of a task began, in seconds after noon."""
    return [(at - NOON).total_seconds() for at in story.simulation.starts(task)]


async def asked(story: Story, method: str, path: str, **body: Any) -> Any:
    answer = await story.http.request(method, f"{API}{path}", headers=BEARER, json=None if method == "GET" else body)
    return answer.raise_for_status().json()


@pytest.fixture(scope="module")
def day() -> Story:
    return Story().play(a_day)


@requirement("0.1")
@requirement("0.d")
def test_0_1_work_follows_each_user_and_work_for_all_keeps_its_hours(day: Story) -> None:
    modes = {each["task_type"]: each["trigger_mode"] for each in day.executions}
    assert modes == {
        "hierarchy_summary": "user_activity",
        "memory_compression": "user_activity",
        "data_cleanup": "periodic",
    }
    assert seconds(day, hierarchy_summary)[0] == 1800, "half an hour after the push, not at the next look"
    assert seconds(day, data_cleanup) == [3600.0 * hour for hour in range(1, 30)], "no drift"


@requirement("0.2")
def test_0_2_what_a_task_is_configured_with_is_read_by_others_from_the_store() -> None:
    async def playing(story: Story) -> None:
        found = await asked(story, "GET", "/tasks/hierarchy_summary")
        assert (found["enabled"], found["timeout"], found["description"]) == (
            True,
            300,
            "Summarise what a user has pushed.",
        )
        activity = found["activity"]
        assert (activity["after"], activity["expires"], activity["breaker"]["failures"]) == (1800, 7200, 3)

    played(playing)


@requirement("0.3")
@requirement("0.15")
def test_0_3_a_key_has_three_parts_with_defaults_and_an_empty_user_is_refused() -> None:
    async def playing(story: Story) -> None:
        await story.push("a:b", "colons")
        empty = await story.http.post("/api/push/chat", json={"user_id": "", "text": "nobody"})
        assert empty.status_code == 422
        assert (await story.http.get("/api/context/no-key")).status_code == 422
        await story.until("12:31")
        key = USER.build("a:b")
        assert key == "a%3Ab:web:assistant"
        seen = await story.get(f"/api/context/{quote(key)}")
        assert (seen["user_id"], seen["device_id"]) == ("a:b", "web")
        assert seen["summary"] == "1 text, the last is 'colons'"

    played(playing)


@requirement("0.4")
@requirement("0.15")
def test_0_4_a_push_while_a_run_waits_only_refreshes_the_last_activity() -> None:
    async def playing(story: Story) -> None:
        first = await story.push("ada")
        before = await asked(story, "GET", f"/runs/{first['run']}")
        await story.until("12:08")
        second = await story.push("ada")
        after = await asked(story, "GET", f"/runs/{first['run']}")
        assert (second["run"], second["reason"]) == (first["run"], "joined")
        assert after["due_at"] == before["due_at"]
        assert (before["touches"], after["touches"]) == (1, 2)
        assert after["touched_at"] > before["touched_at"]

    story = played(playing)
    assert seconds(story, hierarchy_summary) == [1800]
    assert seconds(story, "memory_compression") == [1080], "the other mode: ten minutes after the last push"


@requirement("0.5")
@requirement("0.6")
@requirement("0.14")
def test_0_5_and_0_6_spacing_and_the_breaker_refuse_and_time_heals(day: Story) -> None:
    """Three False in a row, then no for a day; ada has a summary meanwhile."""
    assert "12:40  -- ada pushes 'too soon after the last summary': resting" in day.journal
    assert "17:03  -- bob pushes 'is anybody there?': breaker" in day.journal
    assert "17:40  hierarchy_summary ada:web:assistant: 4 texts, the last is 'coffee, after all'" in day.journal
    assert "16:40  -- bob pushes 'a day later': accepted" in day.journal
    assert "16:12  memory_compression bob: 1 texts were there twice" in day.journal
    bob = [each["success"] for each in reversed(day.executions) if each["user_key"].startswith("bob:")]
    assert bob == [True, False, False, False, True]


@requirement("0.7")
def test_0_7_an_unknown_task_or_one_without_activity_is_a_no_and_no_error() -> None:
    async def playing(story: Story) -> None:
        for task, reason in (("nobody", "unknown_task"), ("data_cleanup", "no_activity")):
            answer = await story.http.post(f"/api/push/{task}/ada")
            assert (answer.status_code, answer.json()["reason"]) == (200, reason)
        assert (await story.http.post("/api/push/memory_compression/ada")).json()["scheduled"] is True

    played(playing)


@requirement("0.8")
@requirement("0.13")
def test_0_8_and_0_13_a_worker_outside_pops_what_is_due_and_ends_it_with_its_fence() -> None:
    async def playing(story: Story) -> None:
        await asked(story, "PUT", "/tasks/transcribe", **TRANSCRIBE)
        id = (await asked(story, "POST", "/runs", task="transcribe", args={"path": "a.wav"}, delay=60))["run"]
        claim = {"n": 1, "tasks": ["transcribe"], "free": 5, "lease": 30}
        assert (await asked(story, "POST", "/claim", worker="early", **claim))["runs"] == [], "only when due"
        await story.until("12:02")
        batches = [await asked(story, "POST", "/claim", worker=name, **claim) for name in ("one", "two")]
        ((run,), others) = (batch["runs"] for batch in batches)
        assert (run["id"], others) == (id, [])
        outcome = {"run": id, "fence": run["fence"], "outcome": "succeeded", "result": "text"}
        wrong = {**outcome, "fence": run["fence"] + 1}
        assert (await asked(story, "POST", "/settle", worker="one", outcomes=[wrong]))["items"] == ["stale"]
        assert (await asked(story, "POST", "/settle", worker="two", outcomes=[outcome]))["items"] == ["stale"]
        assert (await asked(story, "POST", "/settle", worker="one", outcomes=[outcome]))["items"] == ["applied"]

    played(playing)


class Counting(Model):
    """A model that counts how many ask it at once."""

    now = most = 0

    async def summarise(self, texts: list[str]) -> str | None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await super().summarise(texts)
        finally:
            self.now -= 1


@requirement("0.9")
def test_0_9_a_process_has_five_runs_at_most_and_takes_the_next_at_once() -> None:
    story = Story(3)
    story.model = model = Counting(seconds=60)

    async def playing(story: Story) -> None:
        for number in range(12):
            await story.push(f"user-{number}")

    story.play(playing, workers=1)
    assert model.most == 5
    assert seconds(story, hierarchy_summary) == [1800.0] * 5 + [1860.0] * 5 + [1920.0] * 2


@requirement("0.10")
@requirement("0.17")
def test_0_10_and_0_17_a_cancelled_run_is_recorded_and_neither_rests_nor_breaks() -> None:
    async def playing(story: Story) -> None:
        story.model.seconds = 100
        run = (await story.push("ada"))["run"]
        await story.until("12:31")
        await asked(story, "POST", f"/runs/{run}/cancel")
        await story.until("12:32")
        assert (await asked(story, "GET", f"/runs/{run}"))["state"] == "cancelled"
        assert (await story.push("ada"))["reason"] == "accepted"

    played(playing)


@requirement("0.11")
@requirement("0.14")
async def test_0_11_a_stop_without_patience_cancels_and_a_second_start_is_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXT_DB", str(tmp_path / "context.db"))
    begun = asyncio.Event()

    class Endless(Model):
        async def summarise(self, texts: list[str]) -> str | None:
            begun.set()
            await asyncio.Event().wait()
            return None

    async def endless() -> Model:
        return Endless()

    with app.bound_to(MemoryBackend()):
        app.dependency_overrides[the_model] = endless
        try:
            await app.start()
            await app.start()
            assert Rota.current() is app, "the accessor of the process"
            run = await hierarchy_summary.submit("ada")
            await begun.wait()
            await app.stop(grace=0)
            await app.stop(grace=0)
            assert (await run.refresh()).state == "queued", "given back: another process does it"
        finally:
            del app.dependency_overrides[the_model]


@requirement("0.12")
@requirement("0.16")
def test_0_12_depths_executions_and_figures_are_read_over_http() -> None:
    async def playing(story: Story) -> None:
        await story.push("ada")
        depths = await story.get("/api/monitoring/scheduler")
        assert depths == {"data_cleanup": 0, "hierarchy_summary": 1, "memory_compression": 1}
        await story.until("12:45")
        (execution,) = await story.get("/api/monitoring/scheduler/executions", task_type="hierarchy_summary")
        assert execution == {
            "task_type": "hierarchy_summary",
            "user_key": "ada:web:assistant",
            "success": True,
            "duration_ms": 40_000,
            "trigger_mode": "user_activity",
        }
        await story.until("13:01")  # a worker sends its counts with its next claim, at 13:00
        stats = (await asked(story, "GET", "/stats?task=hierarchy_summary"))["items"]
        assert sum(each["succeeded"] for each in stats) == 1
        await story.until("14:01")
        days = (await asked(story, "GET", "/stats?every=day&minutes=1440&group_by=task&group_by=origin"))["items"]
        assert {(each["task"], each["origin"], each["succeeded"]) for each in days} == {
            ("data_cleanup", "schedule", 1),
            ("hierarchy_summary", "touch", 1),
            ("memory_compression", "touch", 1),
        }

    played(playing)


@requirement("0.14")
def test_0_14_a_run_that_did_not_start_in_its_time_expires() -> None:
    async def playing(story: Story) -> None:
        await asked(story, "POST", "/tasks/hierarchy_summary/pause")
        run = (await story.push("ada"))["run"]
        await story.until("14:31")
        await asked(story, "POST", "/tasks/hierarchy_summary/resume")
        await story.until("14:32")
        seen = await asked(story, "GET", f"/runs/{run}")
        assert (seen["state"], seen["reason"], seen["origin"]["kind"]) == ("cancelled", "expired", "touch")

    assert seconds(played(playing), hierarchy_summary) == []


@requirement("0.18")
async def test_0_18_pending_work_is_got_and_ended_in_python_over_a_store() -> None:
    backend = MemoryBackend()
    with app.bound_to(backend):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(site.api), base_url="http://localhost") as http:
            declared = await http.put(f"{API}/tasks/transcribe", json=TRANSCRIBE, headers=BEARER)
            assert declared.status_code == 201
        run = await app.submit("transcribe", path="a.wav")
        assert await transcribe(backend, wait=0) == ["applied"]
        assert await run.result(timeout=10) == "a.wav as text"


@requirement("0.a")
@requirement("0.c")
def test_beyond_a_crash_loses_nothing_and_a_push_during_a_run_queues_one_more(day: Story) -> None:
    eve = [line for line in day.journal if "hierarchy_summary eve" in line or "eve pushes 'two" in line]
    assert eve == [
        "13:15  hierarchy_summary eve:web:assistant begins, attempt 1",
        "13:15  hierarchy_summary eve:web:assistant begins, attempt 2",
        "13:16  -- eve pushes 'two, while the summary of one is made': accepted",
        "13:16  hierarchy_summary eve:web:assistant: 1 text, the last is 'one'",
        "13:46  hierarchy_summary eve:web:assistant begins, attempt 1",
        "13:46  hierarchy_summary eve:web:assistant: 2 texts, the last is 'two, while the summary of one is made'",
    ]


@requirement("0.b")
@pytest.mark.parametrize(("thinks", "success"), [(250, True), (10_000, False)])
def test_beyond_a_timeout_is_enforced_and_a_lease_lasts_as_long_as_the_work(thinks: float, success: bool) -> None:
    async def playing(story: Story) -> None:
        story.model.seconds = thinks
        run = (await story.push("ada"))["run"]
        await story.until("12:40")
        seen = await asked(story, "GET", f"/runs/{run}")
        assert (seen["state"], len(seen["attempts"])) == ("succeeded" if success else "failed", 1)
        assert round(seen["attempts"][0]["seconds"]) == (thinks if success else 300)

    played(playing, workers=2)


@requirement("0.2")
@requirement("0.18")
async def test_the_api_serves_with_the_rota_toml_of_the_readme_and_a_pull_worker_outside(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config,) = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "examples/context_app/README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    (tmp_path / "rota.toml").write_text(config)
    monkeypatch.chdir(tmp_path)
    env = {"PYTHONPATH": str(ROOT), "ROTA_TOKEN": TOKEN, "PATH": os.environ["PATH"]}
    url = f"http://127.0.0.1:{unused_tcp_port}"
    with Process("-m", "examples.context_app", "serve", str(unused_tcp_port), env=env) as served:
        served.wait_for("Uvicorn running on")
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            pushed = (await http.post("/api/push/chat", json={"user_id": "ada", "text": "tea"})).json()
            run = pushed["hierarchy_summary"]["run"]
            ended = (await http.get(f"{API}/runs/{run}?wait=30", headers=BEARER)).json()
            assert ended["state"] == "succeeded"
            assert (await http.get("/api/context/ada:web:assistant")).json()["summary"] == "1 text, the last is 'tea'"
            assert (await http.post("/api/push/memory_compression/ada")).json()["reason"] == "disabled"
            await http.put(f"{API}/tasks/transcribe", json=TRANSCRIBE, headers=BEARER)
            made = await http.post(
                f"{API}/runs", json={"task": "transcribe", "args": {"path": "b.wav"}}, headers=BEARER
            )
            assert made.status_code == 201
            assert await transcribe(f"{url}/rota", TOKEN) == ["applied"]
        served.signal(signal.SIGTERM)
        assert served.wait() in (0, -signal.SIGTERM)
