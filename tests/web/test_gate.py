"""What every request passes: host, origin, credential, limits; and what every answer carries."""

import re

import httpx
import pytest

from rota import Activity, Rota
from rota.domain import codec
from rota.web import Principal, asgi
from rota.web.inputs import BODY_LIMIT
from rota.web.rights import ROLES, Right
from rota.web.server import Place, credentials
from rota.web.table import ROUTES
from rota.web.tokens import Tokens
from tests.web.conftest import HOST, Caller

RUNS = "/api/v1/runs"


@pytest.mark.parametrize("role", [None, *ROLES])
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_every_route_asks_for_its_right(route: object, role: str | None, caller: Caller) -> None:
    from rota.web.routes import Route

    assert isinstance(route, Route)
    path = re.sub(r"\{\w+\}", "none", route.template)
    params = {"wait": 0} if "wait" in route.query.__struct_fields__ else {}
    answer = await caller(role).request(route.method, path, json=None if route.body is None else {}, params=params)
    if route.open:
        assert answer.status_code in (200, 404, 422, 503)
    elif role is None:
        assert answer.status_code == 401
    elif route.right is None or route.right in ROLES[role] or Right.ADMIN in ROLES[role]:
        assert answer.status_code not in (401, 403, 405, 500)
    else:
        assert answer.status_code == 403
        assert answer.json()["right"] == route.right


async def test_the_table_of_rights_has_every_route_of_the_document(caller: Caller) -> None:
    """The document describes itself, too: any credential reads it, and no stranger."""
    paths = (await caller("worker").get("/api/v1/openapi.json")).json()["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert described == {(route.method, route.template) for route in ROUTES} | {("GET", "/api/v1/openapi.json")}
    assert all(
        route.open or route.right or route.template.startswith(("/api/v1/me", "/api/v1/session")) for route in ROUTES
    )
    for role in ROLES:
        assert (await caller(role).get("/api/v1/openapi.json")).status_code == 200


async def test_nothing_is_told_to_strangers_not_even_what_exists(caller: Caller) -> None:
    for path in ("/", "/nothing", RUNS, "/api/v1/openapi.json", "/metrics"):
        assert (await caller(None).get(path)).status_code == 401
    assert (await caller().get("/nothing")).status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example:80"])
async def test_a_foreign_host_without_a_token_is_refused(host: str, caller: Caller) -> None:
    answer = await caller(None).get(RUNS, headers={"Host": host})
    assert answer.status_code == 421
    assert (await caller().get(RUNS, headers={"Host": host})).status_code == 200
    assert (await caller(None).get("/health", headers={"Host": host})).json() == {"status": "ok"}


async def test_a_page_of_another_site_cannot_write_with_the_cookie_of_its_visitor(caller: Caller) -> None:
    cookie = {"Cookie": "theme=dark; rota=session"}
    for headers, status in (
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 401),
        ({"Origin": "http://localhost"}, 401),
    ):
        answer = await caller(None).post(RUNS, json={"task": "add"}, headers={**cookie, **headers})
        assert answer.status_code == status, headers


async def test_a_page_of_another_site_cannot_write_where_the_host_or_a_proxy_says_who_calls(app: Rota) -> None:
    """The host knows its visitors by a cookie of its own; with --no-token, everybody on the machine may."""
    service = asgi(app, lambda _: Principal("visitor", ROLES["admin"]))
    async with app.client(), httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url=HOST) as http:
        for headers, status in (
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Cookie": "host_session=1"}, 403),
            ({"Cookie": "host_session=1", "Sec-Fetch-Site": "same-origin"}, 201),
            ({"Cookie": "host_session=1", "Origin": HOST}, 201),
            ({}, 201),
        ):
            answer = await http.post(RUNS, json={"task": "add", "args": {"a": 1}}, headers=headers)
            assert answer.status_code == status, headers


async def test_a_made_up_token_opens_nothing_where_everybody_on_the_machine_may_come_in(app: Rota) -> None:
    """A page whose name leads to this machine (DNS rebinding) may send any header. Only where nothing but a token lets
    callers in does a token say that they are no such page."""
    service = asgi(app, credentials(Place(), Tokens(), no_token=True).auth, hosts=[])
    token, evil = {"Authorization": "Bearer made-up"}, {"Host": "evil.example:8100"}
    page = {"Origin": "http://evil.example:8100", "Sec-Fetch-Site": "same-origin"}
    async with app.client(), httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url=HOST) as http:
        assert (await http.get(RUNS, headers=token | evil)).status_code == 421
        assert (await http.get("/metrics", headers=token | evil)).status_code == 421
        body = {"task": "add", "args": {"a": 1}}
        assert (await http.post(RUNS, json=body, headers=token | evil | page)).status_code == 421
        cross = token | {"Sec-Fetch-Site": "cross-site"}
        assert (await http.post(RUNS, json=body, headers=cross)).status_code == 403
        assert (await http.post(RUNS, json=body, headers=token)).status_code == 201, "a program that has a token set"
        assert (await http.get(RUNS)).status_code == 200


async def test_bodies_are_bounded_in_size_depth_and_kind(caller: Caller) -> None:
    http = caller()
    json = {"Content-Type": "application/json"}
    for size in (BODY_LIMIT + 1, 10_000_000):
        assert (await http.post(RUNS, content=b"x" * size, headers=json)).status_code == 413

    async def endless() -> object:
        while True:
            yield b" " * 65536

    assert (await http.post(RUNS, content=endless(), headers=json)).status_code == 413  # type: ignore[arg-type]
    deep = b'{"task":"add","args":{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}}"
    assert (await http.post(RUNS, content=deep, headers=json)).status_code == 422
    assert (await http.post(RUNS, content=b"{", headers=json)).status_code == 400
    assert (await http.post(RUNS, content=b"task=add")).status_code == 415


async def test_arguments_are_bounded_wherever_they_are_given(app: Rota, caller: Caller) -> None:
    @app.task(activity=Activity(after=600), key="{user}")
    async def say(user: str, text: str = "", more: str = "") -> None: ...

    http = caller()
    half = "x" * (codec.ARGS_LIMIT // 2)
    long = {"args": {"user": "ada", "more": half * 3}}
    at = {"trigger": "every 1h", "task": "say"}
    async with app.client():
        kept = (
            await http.post(RUNS, json={"task": "say", "args": {"user": "ada", "text": half}, "delay": 600})
        ).json()["run"]
        ended = (
            await http.post(RUNS, json={"task": "say", "args": {"user": "bob", "text": half}, "delay": 600})
        ).json()["run"]
        await http.post(f"{RUNS}/{ended}/cancel", json={})
        for method, path, body in (
            ("POST", RUNS, {"task": "say"} | long),
            ("POST", "/api/v1/tasks/say/try", long),
            ("POST", "/api/v1/tasks/say/touch", long),
            ("POST", "/api/v1/tasks/say/touch", long | {"key": "k"}),
            ("PUT", "/api/v1/schedules/s", at | long),
            ("PATCH", f"{RUNS}/{kept}", {"args": {"more": half}}),
            ("POST", f"{RUNS}/{ended}/retry", {"args": {"more": half}}),
        ):
            answer = await http.request(method, path, json=body)
            assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (413, "/args"), (path, answer.text)
        batch = await http.post(f"{RUNS}/batch", json={"runs": [{"task": "say"} | long]})
        assert [(item["status"], item["errors"][0]["pointer"]) for item in batch.json()["items"]] == [
            (413, "/runs/0/args")
        ]


async def test_strange_names_find_nothing_and_break_nothing(caller: Caller) -> None:
    http = caller()
    for name in ("%00", "..%2f..%2fetc%2fpasswd", "a%0d%0aSet-Cookie:x", "%ff", "x" * 5000):
        answer = await http.get(f"{RUNS}/{name}")
        assert answer.status_code == 404
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("name", ["%00", "a%0d%0aSet-Cookie:x=1", "%1b%5b2J", "..%2f..%2fetc%2fpasswd"])
async def test_strange_names_cannot_be_given_either(name: str, caller: Caller) -> None:
    """Control characters are refused. A path of files is a name as any other: no name is a file."""
    http = caller()
    call = {"trigger": "every 1h", "task": "add", "args": {"a": 1}}
    for path, body in ((f"schedules/{name}", call), (f"tasks/{name}", {}), (f"marks/add/{name}", {})):
        answer = await http.put(f"/api/v1/{path}", json=body)
        fits = name.startswith("..") and not path.startswith("tasks")
        assert answer.status_code in ((201, 204) if fits else (404, 422)), (path, answer.text)
        assert "set-cookie" not in answer.headers
    for field in ("key", "queue", "id"):
        answer = await http.post(RUNS, json={"task": "add", "args": {"a": 1}, field: "a\r\nb"})
        assert answer.status_code == 422, field


async def test_every_answer_has_its_id_and_the_headers_of_security(caller: Caller) -> None:
    for http, path in ((caller(None), RUNS), (caller(), RUNS), (caller(), "/nothing"), (caller(None), "/health")):
        answer = await http.get(path, headers={"X-Request-Id": "mine-1"})
        assert answer.headers["X-Request-Id"] == "mine-1"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert (answer.headers["X-Content-Type-Options"], answer.headers["Cache-Control"]) == ("nosniff", "no-store")
    assert (await caller().get(RUNS, headers={"X-Request-Id": "a b\t"})).headers["X-Request-Id"] != "a b\t"


async def test_a_wrong_method_is_told_the_right_ones(caller: Caller) -> None:
    answer = await caller().delete(RUNS)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD, POST")
