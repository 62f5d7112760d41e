"""Attacks on the service, each as a test. `docs/security.md` names the tests of all rules, also those elsewhere."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rota import Rota, Secret
from rota.web.server import Credentials, Place, serve
from tests.engine.test_traces import spans as spans
from tests.web.conftest import Caller, by_role

RUNS = "/api/v1/runs"
POST = (
    b"POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\n"
    b"Content-Type: application/json\r\nContent-Length: 40\r\n\r\n"
)
CARD = "4111-1111-1111-1111"


@asynccontextmanager
async def connected(app: Rota) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A raw connection to a service in this process."""
    stop = asyncio.Event()
    serving = serve(app, Place("127.0.0.1", 0), Credentials(by_role), [], works=False, stop=stop)
    port = await anext(serving)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        stop.set()
        await anext(serving, None)


async def test_a_caller_that_sends_no_headers_loses_its_connection(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.web.slow_callers.HEADERS_SECONDS", 0.1)
    async with connected(app) as (reader, _):
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_caller_that_stops_in_its_headers_loses_its_connection(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.web.slow_callers.HEADERS_SECONDS", 0.1)
    async with connected(app) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in await reader.readuntil(b"\r\n")
        await reader.readuntil(b"}")
        writer.write(b"GET /health HTTP/1.1\r\nX-Slow: a")
        assert await asyncio.wait_for(reader.read(), 10) == b""


async def test_a_body_that_does_not_come_is_not_awaited(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.web.inputs.BODY_SECONDS", 0.1)
    async with connected(app) as (reader, writer):
        writer.write(POST + b'{"task": ')
        assert b"408" in await asyncio.wait_for(reader.readline(), 10)
        assert b"too-slow" in await asyncio.wait_for(reader.read(), 10), "and the connection is closed"


@pytest.mark.parametrize("bomb", [b"X-Bomb: " + b"a" * 200_000, b"\r\n".join(b"X-%d: b" % i for i in range(20_000))])
async def test_a_bomb_of_headers_is_refused(app: Rota, bomb: bytes) -> None:
    async with connected(app) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + bomb)
        assert b" 400 " in await asyncio.wait_for(reader.readline(), 10)


async def test_what_is_no_http_is_answered_as_all_errors_are(app: Rota) -> None:
    async with connected(app) as (reader, writer):
        writer.write(b"this is no HTTP\r\n\r\n")
        head, _, body = (await asyncio.wait_for(reader.read(), 10)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
        assert b"application/problem+json" in head
        assert b"/problems/" in body


@pytest.mark.parametrize("text", [b'\\"' * 500_000, b"\\" * 1_000_000, b'"' * 1_000_000, b"]" * 1_000_000])
async def test_a_text_without_an_end_is_looked_at_once(caller: Caller, text: bytes) -> None:
    """To look for the end of each quotation mark in it would take hours, and nobody else would be answered."""
    body = b"[" * 65 + b"]" * 65 + b'"' + text
    answer = await caller().post(RUNS, content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["errors"][0]["detail"] in ("this is not JSON", "nested too deeply")


@pytest.mark.parametrize("key", ["a\r\nSet-Cookie: x=1", "a\nb", "nul\x00", "esc\x1b[31m"])
async def test_control_characters_in_keys_are_refused(caller: Caller, key: str) -> None:
    async with caller() as http:
        answer = await http.post(RUNS, json={"task": "add", "args": {"a": 1}, "key": key})
        assert answer.status_code == 422
        assert "set-cookie" not in answer.headers
        header = await http.post(RUNS, json={"task": "add"}, headers={"Idempotency-Key": "k\x1b[2J"})
        assert header.status_code == 422


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "\x1b]0;title\x07\x9b2J", "\u202egnp.exe"])
async def test_hostile_text_comes_back_as_json_and_as_nothing_else(app: Rota, caller: Caller, text: str) -> None:
    @app.task(logs=True)
    async def fail(said: str) -> None:
        logging.getLogger("jobs").warning("they say %s", said)
        raise ValueError(said)

    async with caller() as http, app:
        id = (await http.post(RUNS, json={"task": "fail", "args": {"said": text}})).json()["run"]
        answer = await http.get(f"{RUNS}/{id}", params={"wait": 30})
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.json()["args"]["said"] == text
        tail = await http.get(f"{RUNS}/{id}/log")
        assert tail.headers["content-type"] == "application/json"
        assert "they say" in tail.text
        for each in (answer, tail):
            assert not {"\x1b", "\x07"} & set(each.text), "JSON escapes what a terminal would obey"


async def test_a_secret_is_in_no_traceback_and_in_no_span(
    app: Rota, caller: Caller, spans: InMemorySpanExporter
) -> None:
    @app.task
    async def pay(card: Annotated[str, Secret]) -> None:
        raise ValueError(f"the bank refuses {card}")

    async with caller() as http, app:
        id = (await http.post(RUNS, json={"task": "pay", "args": {"card": CARD}})).json()["run"]
        ended = await http.get(f"{RUNS}/{id}", params={"wait": 30})
        assert "the bank refuses ***" in ended.text
        assert CARD not in ended.text
    told = [f"{span.attributes} {span.status.description} {span.events}" for span in spans.get_finished_spans()]
    assert told
    assert not [text for text in told if CARD in text]


async def test_a_secret_is_not_found_by_a_search(app: Rota, caller: Caller) -> None:
    @app.task
    async def pay(card: Annotated[str, Secret], shop: str) -> None: ...

    async with caller() as http:
        await http.post(RUNS, json={"task": "pay", "args": {"card": CARD, "shop": "corner"}})
        assert len((await http.get(RUNS, params={"q": "corner"})).json()["items"]) == 1
        assert (await http.get(RUNS, params={"q": "4111"})).json()["items"] == []
        await http.post(RUNS, json={"task": "greet", "args": {"user": "eve", "password": "tr0ub4dor"}})
        assert (await http.get(f"{RUNS}/count", params={"q": "tr0ub4dor"})).json()["count"] == 0


async def test_who_may_not_read_arguments_may_not_search_them(caller: Caller) -> None:
    async with caller("viewer") as http:
        for path in (RUNS, f"{RUNS}/count"):
            answer = await http.get(path, params={"q": "corner"})
            assert (answer.status_code, answer.json()["right"]) == (403, "read:payload")


async def test_no_right_makes_work_of_what_is_rotas_own(app: Rota, caller: Caller) -> None:
    """A run of `rota.operation` acts on runs, one of `rota.session:` is a login: only their routes make them. Else the
    right to submit would be the right to operate, and to be somebody else."""
    http = caller("admin")
    kept = (await http.post(RUNS, json={"task": "add", "args": {"a": 1}, "delay": 3600})).json()["run"]
    acts = {"action": "cancel", "filter": {"ids": [kept]}, "by": "somebody else"}
    forged = {"task": "rota.operation", "args": acts, "unknown_ok": True}
    login = {"task": "rota.session:", "id": "0" * 48, "args": {"name": "eve", "token_sha256": "0" * 64}}
    for body in (forged, login | {"unknown_ok": True}):
        answer = await http.post(RUNS, json=body)
        assert (answer.status_code, "task of rota itself" in answer.text) == (403, True)
        batch = await http.post(f"{RUNS}/batch", json={"runs": [body]})
        assert [item["status"] for item in batch.json()["items"]] == [403]
        args, task = body["args"], body["task"]
        for method, path, content in (
            ("POST", f"/api/v1/tasks/{task}/try", {"args": args, "unknown_ok": True}),
            ("POST", f"/api/v1/tasks/{task}/touch", {"args": args}),
            ("PUT", f"/api/v1/tasks/{task}", {}),
            ("PUT", "/api/v1/schedules/s", {"trigger": "every 1h", "task": task, "args": args, "unknown_ok": True}),
            ("POST", "/api/v1/claim", {"worker": "w", "n": 1, "tasks": [task]}),
        ):
            answer = await http.request(method, path, json=content)
            assert answer.status_code == 403, (method, path, answer.text)
    asked = {"action": "pause", "ids": [kept], "dry_run": False}
    operation = (await http.post("/api/v1/operations", json=asked)).json()["id"]
    changed = await http.patch(f"{RUNS}/{operation}", json={"args": {"by": "somebody else"}})
    assert changed.status_code == 403
    async with app:
        ended = await http.get(f"{RUNS}/{operation}", params={"wait": 30})
    assert ended.json()["state"] == "succeeded", "its own route makes it, and a worker carries it out"
    again = await http.post(f"{RUNS}/{operation}/retry", json={"args": {"action": "cancel"}})
    assert again.status_code == 403
    assert (await http.get(f"{RUNS}/{kept}")).json()["state"] == "paused"


async def test_a_task_of_a_user_may_have_a_name_that_begins_like_those_of_rota(app: Rota, caller: Caller) -> None:
    app.task(name="rota.mine")(lambda: None)
    answer = await caller("admin").post(RUNS, json={"task": "rota.mine"})
    assert answer.status_code == 201


async def test_no_operator_acts_again_in_the_name_of_another(app: Rota, caller: Caller) -> None:
    """An operation acts in the name that its run has, and a session ends when its run expires: nobody retries the one
    or moves the other, alone or among many."""
    admin, operator = caller("admin"), caller("operator")
    kept = (await admin.post(RUNS, json={"task": "add", "args": {"a": 1}, "delay": 3600})).json()["run"]
    asked = {"action": "pause", "ids": [kept], "dry_run": False}
    operation = (await admin.post("/api/v1/operations", json=asked)).json()["id"]
    later = {"expires_at": "2090-01-01T00:00:00Z"}
    assert (await operator.patch(f"{RUNS}/{operation}", json=later)).status_code == 403
    async with app:
        assert (await admin.get(f"{RUNS}/{operation}", params={"wait": 30})).json()["state"] == "succeeded"
    assert (await operator.post(f"{RUNS}/{operation}/retry", json={})).status_code == 403
    for found in ({"ids": [kept, operation]}, {"filter": {"task": ["rota.operation"]}}):
        for act in ({"action": "retry"}, {"action": "reschedule", "delay": 60}):
            answer = await operator.post("/api/v1/operations", json={**act, **found})
            assert (answer.status_code, "task of rota itself" in answer.text) == (403, True), (act, found)
    dry = await operator.post("/api/v1/operations", json={"action": "reschedule", "delay": 60, "filter": {"q": "a"}})
    assert dry.status_code == 200, "runs of rota's own tasks that nobody named are left alone"
