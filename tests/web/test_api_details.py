"""What every route does beside its answer: gzip, ETags, cursors, problem pages, Prefer, and ids that are remembered."""

import asyncio
import re
from typing import Annotated

import httpx
import pytest
from msgspec import Struct

from rota import Activity, Limit, Rota, Secret
from rota.store import Retention
from rota.stores.memory import MemoryBackend
from rota.web import asgi
from rota.web.cursors import opened, sealed
from rota.web.problems import MEANINGS, TITLES, WORDS, Problem
from tests.web.conftest import HOST, Caller, by_role

RUNS = "/api/v1/runs"


async def submitted(http: httpx.AsyncClient, **body: object) -> str:
    answer = await http.post(RUNS, json={"task": "add", "args": {"a": 1}, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["run"])


async def test_every_problem_has_a_page_that_everybody_can_read(caller: Caller) -> None:
    assert MEANINGS.keys() == TITLES.keys()
    async with caller(None) as http:
        refused = await http.get("/api/v1/me")
        assert refused.json()["type"] == "/problems/no-valid-credential"
        page = await http.get(refused.json()["type"])
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "401 no valid credential" in page.text
        assert [(await http.get(f"/problems/{word}")).status_code for word in WORDS.values()] == [200] * len(WORDS)
        assert (await http.get("/problems/<script>")).status_code == 404
        assert (await http.get("/problems/x", headers={"Host": "evil.example"})).status_code == 421


@pytest.mark.parametrize(
    ("name", "chosen", "colour"),
    [
        ("production", None, "red"), ("Live", None, "red"), ("staging", None, "amber"), ("test-3", None, "blue"),
        ("dev", None, "green"), ("demo", None, "violet"), ("Lisbon", None, "grey"), ("production", "green", "green"),
    ],
)  # fmt: skip
async def test_a_caller_hears_in_which_environment_the_app_runs(
    name: str, chosen: str | None, colour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_ENVIRONMENT", name)
    if chosen is not None:
        monkeypatch.setenv("ROTA_ENVIRONMENT_COLOUR", chosen)
    app = Rota("memory://")
    transport = httpx.ASGITransport(asgi(app, by_role, hosts=[]))
    async with app.client(), httpx.AsyncClient(transport=transport, base_url=HOST) as http:
        answer = await http.get("/api/v1/me", headers={"Authorization": "Bearer viewer"})
        assert answer.json()["environment"] == {"name": name, "colour": colour}
        assert name not in (await http.get("/api/v1/me")).text, "a stranger does not hear it"


async def test_long_answers_are_packed_for_callers_that_take_gzip(caller: Caller) -> None:
    async with caller() as http:
        for _ in range(5):
            await submitted(http)
        packed = await http.get(RUNS)
        assert packed.headers["content-encoding"] == "gzip"
        for encodings in ("identity", "gzip;q=0", "br, gzip; q=0.0", "x-gzip-not"):
            plain = await http.get(RUNS, headers={"Accept-Encoding": encodings})
            assert "content-encoding" not in plain.headers, encodings
        assert "content-encoding" in (await http.get(RUNS, headers={"Accept-Encoding": "br, GZIP;q=0.5"})).headers
        assert plain.headers["vary"] == "Accept-Encoding"
        assert plain.json()["items"] == packed.json()["items"]
        assert "content-encoding" not in (await http.get("/api/v1/me")).headers, "a short answer stays as it is"


async def test_a_reader_that_has_the_version_gets_304(caller: Caller) -> None:
    async with caller() as http:
        path = f"{RUNS}/{await submitted(http)}"
        tag = (await http.get(path)).headers["etag"]
        same = await http.get(path, headers={"If-None-Match": f'"other", W/{tag}'})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
        await http.patch(path, json={"priority": 7})
        assert (await http.get(path, headers={"If-None-Match": tag})).status_code == 200


async def test_every_object_says_what_time_it_is_in_the_store(caller: Caller) -> None:
    """Whoever shows "in 5 minutes" needs the clock that decides; lists have it, too, and all have the same fields."""
    async with caller() as http:
        before = (await http.get(RUNS)).json()["now"]
        id = await submitted(http)
        body = {"trigger": "daily 09:00", "task": "add", "args": {"a": 1}}
        answers = [
            await http.put("/api/v1/schedules/s", json=body),
            await http.patch(f"{RUNS}/{id}", json={"priority": 1}),
            await http.post(f"{RUNS}/{id}/pause", json={}),
            await http.post(RUNS, json={"task": "add", "args": {"a": 1}}),
        ]
        asked = (f"runs/{id}", f"runs/{id}/why", "tasks/add", "schedules/s", "runs/count", "scale")
        answers += [await http.get(f"/api/v1/{path}") for path in asked]
        lists = [
            await http.post(f"{RUNS}/batch", json={"runs": [{"task": "add", "args": {"a": 1}}, {}]}),
            await http.post(f"{RUNS}/batch", json={"runs": []}),
            await http.get(f"{RUNS}/{id}/log"),
        ]
        for answer in (*answers, *lists):
            assert "now" in answer.json(), f"{answer.request.method} {answer.request.url}"
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", answer.json()["now"]), answer.text
            assert answer.json()["now"] >= before
        assert [{*answer.json()} for answer in lists] == [{"items", "next", "now"}] * 3
        schema = (await http.get("/api/v1/tasks/add/schema")).json()
        assert "now" not in schema, "a schema is nothing but a schema"


async def test_a_cursor_belongs_to_its_filter(caller: Caller) -> None:
    async with caller() as http:
        ids = [await submitted(http) for _ in range(3)]
        first = (await http.get(RUNS, params={"task": "add", "limit": 2})).json()
        following = {"task": "add", "limit": 1, "cursor": first["next"]}
        assert [run["id"] for run in (await http.get(RUNS, params=following)).json()["items"]] == [ids[0]]
        other = await http.get(RUNS, params=following | {"task": "greet"})
        assert (other.status_code, other.json()["errors"][0]["pointer"]) == (400, "?cursor")
        assert (await http.get(RUNS, params={"cursor": "nonsense"})).status_code == 422
        assert (await http.get(RUNS, params={"cursor": "non~sense"})).status_code == 400


async def test_a_cursor_of_every_list_belongs_to_its_filter(caller: Caller) -> None:
    async with caller() as http:
        for id in ("a~b", "c", "d"):
            body = {"trigger": "daily 09:00", "task": "add", "args": {"a": 1}}
            assert (await http.put(f"/api/v1/schedules/{id}", json=body)).status_code == 201
            run = await submitted(http)
            await http.post("/api/v1/operations", json={"action": "pause", "ids": [run], "dry_run": False})
        for path, narrower in (("schedules", {"task": "add"}), ("audit", {"by": "admin"}), ("operations", None)):
            first = (await http.get(f"/api/v1/{path}", params={"limit": 1})).json()
            following = {"limit": 1, "cursor": first["next"]}
            second = (await http.get(f"/api/v1/{path}", params=following)).json()
            assert first["items"][0]["id"] != second["items"][0]["id"], path
            if narrower is not None:
                other = await http.get(f"/api/v1/{path}", params=following | narrower)
                assert (other.status_code, other.json()["errors"][0]["pointer"]) == (400, "?cursor"), path
            assert (await http.get(f"/api/v1/{path}", params={"cursor": "nonsense"})).status_code == 422


def test_a_cursor_outlives_a_version_that_knows_more_fields() -> None:
    class Before(Struct):
        task: tuple[str, ...] = ()
        cursor: str | None = None

    class After(Before):
        zone: str | None = None

    cursor = sealed("5", Before(("add",)))
    assert opened(After(("add",), cursor)) == "5" == opened(Before(("add",), sealed("5", After(("add",)))))
    with pytest.raises(Problem, match="another filter"):
        opened(After(("add",), cursor, "UTC"))


async def test_a_submit_that_prefers_to_wait_gets_the_end(app: Rota, caller: Caller) -> None:
    async with caller() as http, app:
        answer = await http.post(RUNS, json={"task": "add", "args": {"a": 2}}, headers={"Prefer": "wait=30"})
        assert (answer.status_code, answer.headers["preference-applied"]) == (200, "wait=30")
        assert (answer.json()["ended"]["state"], answer.json()["ended"]["result"]) == ("succeeded", 3)
    async with caller() as http:
        late = await http.post(
            RUNS, json={"task": "add", "args": {"a": 2}, "delay": 60}, headers={"Prefer": "respond-async, wait=0"}
        )
        assert late.status_code == 201
        assert "ended" not in late.json()


async def test_a_caller_follows_the_attempts_of_a_run(app: Rota, caller: Caller) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> None:
        started.set()
        await go_on.wait()

    async with caller() as http:
        path = f"{RUNS}/{(await slow.submit()).id}"
        waiting = asyncio.create_task(http.get(path, params={"wait": 30, "since_fence": 0}))
        async with app:
            await started.wait()
            assert ((await waiting).json()["state"], (await waiting).json()["fence"]) == ("running", 1)
            go_on.set()
            ended = await http.get(path, params={"wait": 30, "since_fence": 1})
            assert ended.json()["state"] == "succeeded"


async def test_a_run_that_is_no_longer_kept_is_gone_and_not_unknown(app: Rota, caller: Caller) -> None:
    async with caller() as http:
        async with app:
            id = await submitted(http, id="mine")
            await http.get(f"{RUNS}/{id}", params={"wait": 30})
        assert isinstance(app.backend, MemoryBackend)
        app.backend.skew += 3600
        await (await app.client().store()).sweep(Retention(succeeded=0.0, failed=0.0, least=0))
        gone, unknown = await http.get(f"{RUNS}/{id}"), await http.get(f"{RUNS}/nobody")
        assert (gone.status_code, unknown.status_code) == (410, 404)


async def test_the_schema_of_arguments_hides_secrets(app: Rota, caller: Caller) -> None:
    @app.task
    async def pay(amount: int, card: Annotated[str, Secret] = "0000", tags: list[str] | None = None) -> None: ...

    async with caller("viewer") as http:
        found = (await http.get("/api/v1/tasks/pay/schema")).json()
        assert (found["required"], found["additionalProperties"]) == (["amount"], False)
        assert found["properties"]["amount"] == {"type": "integer"}
        assert found["properties"]["card"] == {"type": "string", "writeOnly": True}
        assert found["properties"]["tags"]["default"] is None
        assert (await http.get("/api/v1/tasks/nobody/schema")).status_code == 404


async def test_the_keys_of_a_task_say_what_waits_and_what_rests(app: Rota, caller: Caller) -> None:
    @app.task(key="{user}", activity=Activity(after=0.0, spacing=3600))
    async def sync(user: str) -> None: ...

    path = "/api/v1/tasks/sync/keys"
    async with caller() as http:
        async with app:
            touched = (await http.post("/api/v1/tasks/sync/touch", json={"args": {"user": "ada"}})).json()
            await http.get(f"{RUNS}/{touched['run']}", params={"wait": 30})
        waits = (await http.post("/api/v1/tasks/sync/touch", json={"args": {"user": "bob"}})).json()
        assert waits["due_at"] is not None
        found = {item["key"]: item for item in (await http.get(path)).json()["items"]}
        assert (found["bob"]["run"], found["bob"]["rests_until"]) == (waits["run"], None)
        assert (found["ada"]["run"], found["ada"]["failures"], found["ada"]["breaker"]) == (None, 0, False)
        assert found["ada"]["rests_until"] > found["ada"]["finished_at"]
        assert [item["key"] for item in (await http.get(path, params={"q": "AD"})).json()["items"]] == ["ada"]


async def test_a_plan_shows_its_runs(app: Rota, caller: Caller) -> None:
    @app.task(limit=Limit(1))
    async def call(name: str) -> None: ...

    async with caller("viewer") as http:
        options = {"call": lambda name: call.bind(name), "at": lambda _: 4e9, "key": str, "period": "2026-11-18"}
        await app.plan("calls", ["ada", "bob"], **options)  # type: ignore[arg-type]
        found = (await http.get("/api/v1/plans/calls", params={"period": "2026-11-18"})).json()
        assert len(found["items"]) == 2
        assert (await http.get("/api/v1/plans/calls", params={"period": "2026-11-19"})).status_code == 404
        assert (await http.get("/api/v1/plans/calls", params={"period": "0" * 900})).status_code == 422


async def test_a_second_retry_answers_the_retry_that_exists(app: Rota, caller: Caller) -> None:
    async with caller() as http, app:
        id = await submitted(http)
        await http.get(f"{RUNS}/{id}", params={"wait": 30})
        answers = [await http.post(f"{RUNS}/{id}/retry", json={}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [201, 200]
        assert len({answer.json()["run"] for answer in answers}) == 1


@pytest.mark.parametrize("path", [RUNS, "/api/v1/audit", "/health"])
async def test_a_method_that_a_path_does_not_take_is_told_which_it_does(caller: Caller, path: str) -> None:
    async with caller() as http:
        answer = await http.request("PROPFIND", path)
        assert answer.status_code == 405
        assert re.fullmatch(r"GET, HEAD(, POST)?", answer.headers["allow"])
