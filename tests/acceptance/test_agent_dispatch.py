"""The example of the fifth source document, row by row: over its API, and in processes on Redis."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples.agent_dispatch import agent
from examples.agent_dispatch.agent import app, run_task, store_url
from examples.agent_dispatch.api import api
from examples.agent_dispatch.model import TheModel
from examples.services import Services
from rota import Rota, cli
from rota.stores.memory import MemoryBackend
from storekit.faults import FaultyBackend
from storekit.servers import RedisServer
from tests.requirement import requirement

ROOT = Path(__file__).parents[2]
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[TheModel]:
    with TheModel() as opened:
        monkeypatch.setattr(agent, "MODEL", opened.url)
        yield opened
        opened.release()


@pytest.fixture
def backend() -> Iterator[FaultyBackend]:
    """The app in a store of its own, whose requests and replies can get lost."""
    found = FaultyBackend(MemoryBackend())
    with app.bound_to(found):
        yield found


@pytest.fixture
async def http(backend: FaultyBackend) -> AsyncIterator[httpx.AsyncClient]:
    """The API, without an engine: `async with app` starts one."""
    async with (
        app.client(),
        httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://localhost") as client,
    ):
        yield client


async def send(http: httpx.AsyncClient, message: str, **more: Any) -> str:
    answer = await http.post("/message/send", json={"message": message, **more})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["task_id"])


async def until(http: httpx.AsyncClient, id: str, state: str) -> Any:
    async with asyncio.timeout(30):
        while (task := (await http.get(f"/tasks/{id}")).json())["state"] != state:
            await app.client().news()
    return task


@requirement("4.1")
async def test_4_1_two_callers_get_an_id_at_once_and_the_answer_later(http: httpx.AsyncClient, model: TheModel) -> None:
    model.hold("slow", 1)
    async with app:
        slow, fast = await send(http, "slow"), await send(http, "fast")
        assert (await until(http, fast, "completed"))["artifact"] == [f"step {n} of fast" for n in (1, 2, 3)]
        assert (await http.get(f"/tasks/{slow}")).json()["state"] == "working", "one caller does not stall the other"
        model.release()
        await until(http, slow, "completed")
    assert (await http.get("/tasks/nobody")).status_code == 404


@requirement("4.2")
@requirement("4.a")
async def test_4_2_pause_keeps_the_steps_that_are_done_and_cancel_reaches_the_handler(
    http: httpx.AsyncClient, model: TheModel
) -> None:
    model.hold("poem", 2)
    model.hold("novel", 1)
    async with app:
        poem, novel = await send(http, "poem"), await send(http, "novel")
        await asyncio.to_thread(model.reached, "poem", 2)
        await asyncio.to_thread(model.reached, "novel", 1)
        assert (await http.post(f"/tasks/{poem}/pause")).json() == {"changed": True}
        await until(http, poem, "paused")
        assert (await http.post(f"/tasks/{novel}/cancel")).json() == {"changed": True}
        await until(http, novel, "canceled")
        model.release()
        assert (await http.post(f"/tasks/{poem}/resume")).json() == {"changed": True}
        await until(http, poem, "completed")
        assert (await http.post(f"/tasks/{poem}/stop")).status_code == 422, "there are three operations on a task"
    assert [each.step for each in model.asked if each.message == "poem"] == [1, 2, 2, 3], "step 1 was not done again"


@requirement("4.4")
async def test_4_4_a_queue_of_100_is_full_and_a_sender_waits_for_room(http: httpx.AsyncClient, model: TheModel) -> None:
    await app.submit_many([run_task.bind(f"message {n}", 1) for n in range(100)])
    full = await http.post("/message/send", json={"message": "no", "wait": False})
    assert (full.status_code, full.json()["detail"].startswith("the queue is full; wait for workers")) == (429, True)
    waiting = asyncio.create_task(send(http, "patient"))
    async with app:
        await until(http, await waiting, "completed")


@requirement("4.5")
def test_4_5_an_unreachable_server_fails_the_start_of_the_api() -> None:
    env = {**os.environ, "SCHEDULER_TYPE": "redis", "REDIS_URL": "redis://127.0.0.1:1"}
    command = [sys.executable, "-m", "uvicorn", "examples.agent_dispatch.api:api", "--port", "0"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "StoreUnavailable" in done.stderr
    assert "127.0.0.1" in done.stderr


@requirement("4.5")
def test_4_5_a_missing_driver_names_the_install_command() -> None:
    code = "import sys; sys.modules['redis'] = None; import examples.agent_dispatch.agent"
    env = {**os.environ, "SCHEDULER_TYPE": "redis", "REDIS_URL": "redis://cache"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert 'MissingExtra: redis:// needs a driver: pip install "rota[redis]"' in done.stderr


@requirement("4.6")
async def test_4_6_a_lost_reply_makes_no_second_task(
    http: httpx.AsyncClient, backend: FaultyBackend, model: TheModel
) -> None:
    backend.fail("put", "reply lost", times=2)
    id = await send(http, "once", steps=1)
    async with app:
        await until(http, id, "completed")
    assert [each.run for each in model.asked] == [id]


@requirement("4.8")
@requirement("4.12")
async def test_4_8_health_queue_length_and_clear(http: httpx.AsyncClient) -> None:
    assert (await http.get("/queue")).json() == {"length": 0}
    for number in range(3):
        await send(http, f"message {number}")
    assert (await http.get("/health")).json() == {"healthy": True}
    assert (await http.get("/queue")).json() == {"length": 3}
    assert (await http.delete("/queue")).json() == {"cleared": 3}
    assert (await http.get("/queue")).json() == {"length": 0}


@requirement("4.9")
async def test_4_9_the_app_is_a_context_manager_and_closes_twice(backend: FaultyBackend) -> None:
    async with app:
        assert app.status().running
    await app.stop()
    assert not app.status().running


@requirement("4.3")
@requirement("4.10")
@requirement("4.11")
@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "memory://"),
        ({"SCHEDULER_TYPE": "memory", "REDIS_URL": "redis://a"}, "memory://"),
        ({"SCHEDULER_TYPE": "redis", "REDIS_URL": "redis://a:6380/1"}, "redis://a:6380/1"),
        ({"SCHEDULER_TYPE": "redis", "ROTA_REDIS_HOST": "b", "ROTA_REDIS_DB": "2"}, "redis://b:6379/2"),
        ({"ROTA_URL": "postgresql://c/d"}, "postgresql://c/d"),
        ({"ROTA_URL": "redis://a?max_connections=10"}, "redis://a?max_connections=10"),
    ],
)
def test_4_3_the_environment_chooses_the_store(
    environment: dict[str, str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SCHEDULER_TYPE", "REDIS_URL", "ROTA_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Rota(store_url()).settings.store_url == url


@requirement("4.12")
def test_4_12_the_first_five_are_listed_in_the_order_of_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'rota.db'}"
    with app.bound_to(url):
        sent = [run_task.submit_sync(f"message {n}").id for n in range(7)]
    assert cli.run(["--url", url, "runs", "ls", "--next", "5", "--json"]) == 0
    assert [run["id"] for run in json.loads(capsys.readouterr().out)] == sent[:5]


@requirement("4.13")
async def test_4_13_the_caller_names_the_task_and_a_repetition_is_the_same_task(http: httpx.AsyncClient) -> None:
    assert [await send(http, "poem", task_id="mine") for _ in range(2)] == ["mine", "mine"]
    other = await http.post("/message/send", json={"message": "novel", "task_id": "mine"})
    assert (other.status_code, (await http.get("/queue")).json()) == (409, {"length": 1})


@requirement("4.c")
async def test_beyond_a_message_that_does_not_fit_is_set_aside_and_the_others_go_on(
    http: httpx.AsyncClient, backend: FaultyBackend, model: TheModel
) -> None:
    bad = await Rota(backend).submit("run_task", message=["no text"])
    good = await send(http, "good", steps=1)
    async with app:
        await until(http, good, "completed")
        async with asyncio.timeout(30):
            while not (seen := await bad.refresh()).attempts:
                await app.client().news()
    assert seen.attempts[0].outcome == "unbindable"


@requirement("4.3")
@requirement("4.7")
@requirement("4.11")
@requirement("4.b")
def test_4_7_and_beyond_two_processes_on_redis_share_traces_and_survive_a_crash(
    valkey: RedisServer, namespace: str, tmp_path: Path
) -> None:
    """The API only submits. A worker is killed in the middle of step 2, and another goes on after step 1."""
    traces = tmp_path / "traces.jsonl"
    store = {"SCHEDULER_TYPE": "redis", "REDIS_URL": f"{valkey.url}&namespace={namespace}", "ROTA_LEASE": "2"}
    worker = ["-m", "uvicorn", "examples.agent_dispatch.api:api", "--log-level", "warning", "--port"]
    with TheModel() as model, Services(**store, TRACES=str(traces), MODEL_URL=model.url) as services:
        model.hold("report", 2)
        desk = services.serve("examples.agent_dispatch.api:api", ROTA_ENABLED="false")
        first = services.start(worker)
        sent = {"message": "report", "steps": 3, "task_id": "report-1"}
        parent = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        desk.ready().ask("POST", "/message/send", sent, parent)
        model.reached("report", 2)
        while desk.ask("GET", "/tasks/report-1")["progress"] is None:  # the checkpoint is stored with it
            assert first.process.poll() is None
        first.kill()
        model.release()
        services.start(worker)
        task = desk.ask("GET", "/tasks/report-1?wait=29")
        assert task["state"] == "completed"
    assert [each.step for each in model.asked] == [1, 2, 2, 3]
    assert (task["attempts"], len(task["artifact"])) == (2, 3)
    spans = [json.loads(line) for line in traces.read_text().splitlines()]
    (send_span,) = [span for span in spans if span["name"] == "send run_task"]
    processed = [span for span in spans if span["name"] == "process run_task"]
    assert send_span["context"]["trace_id"] == f"0x{TRACE}", "the caller's trace goes on in the submit"
    assert send_span["context"]["span_id"] in {link["context"]["span_id"] for link in processed[-1]["links"]}
    pids = {span["resource"]["attributes"]["process.pid"] for span in (send_span, processed[-1])}
    assert len(pids) == 2, "the worker's span is of another process"
