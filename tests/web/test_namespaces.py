"""Several namespaces in one service, with rights for each."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.types import Scope

from rota import Rota
from rota.cli import run as command
from rota.errors import InvalidOptions
from rota.web import asgi
from rota.web.gate import bearer_of
from rota.web.rights import ROLES, Principal
from rota.web.table import ROUTES
from rota.web.tokens import Tokens, fingerprint
from tests.web.serving import serving

HOST = "http://localhost"
Caller = Callable[[str], httpx.AsyncClient]
OPEN = ("/health", "/ready")


def by_words(scope: Scope) -> Principal | None:
    """The token of a test is a role and the namespaces for which it holds: `operator@a,b`; `operator@`: all."""
    role, _, names = (bearer_of(Headers(scope=scope)) or "").partition("@")
    found = Principal(role, ROLES[role]) if role in ROLES else None
    return found and Principal(role, ROLES[role], namespaces=tuple(filter(None, names.split(","))))


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    apps = {name: Rota("memory://", namespace=name) for name in ("a", "b")}
    own = Rota("memory://")
    for name, app in [("own", own), *apps.items()]:
        app.task(name=f"task_{name}")(_nothing)
    async with AsyncExitStack() as opened:
        for app in (own, *apps.values()):
            await opened.enter_async_context(app.client())
        service = asgi(own, by_words, hosts=[], namespaces=apps)

        def make(token: str) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(service, raise_app_exceptions=False)
            return httpx.AsyncClient(transport=transport, base_url=HOST, headers={"Authorization": f"Bearer {token}"})

        yield make


async def _nothing() -> None: ...


async def test_each_namespace_has_runs_of_its_own(caller: Caller) -> None:
    http = caller("admin@")
    made = await http.post("/ns/a/api/v1/runs", json={"task": "task_a"})
    assert made.status_code == 201
    assert made.headers["location"] == f"/ns/a/api/v1/runs/{made.json()['run']}"
    seen = {path: (await http.get(f"{path}/api/v1/runs")).json()["items"] for path in ("", "/ns/a", "/ns/b")}
    assert {path: len(items) for path, items in seen.items()} == {"": 0, "/ns/a": 1, "/ns/b": 0}
    assert (await http.get("/ns/c/api/v1/runs")).status_code == 404
    document = (await http.get("/ns/a/api/v1/openapi.json")).json()
    assert document["servers"] == [{"url": "/ns/a"}]
    assert (await http.get("/ns/b/api/v1/me")).json()["namespaces"] == ["a", "b"]


@pytest.mark.parametrize("role", [*ROLES])
async def test_no_route_answers_a_credential_of_another_namespace(caller: Caller, role: str) -> None:
    for route in ROUTES:
        path = re.sub(r"{[^}]*}", "x", route.path)
        if path in OPEN or route.open:
            continue
        foreign = await caller(f"{role}@b").request(route.method, f"/ns/a{path}", json={})
        assert (foreign.status_code, "namespace" in foreign.text) == (403, True), (route.path, foreign.text)
        own = await caller(f"{role}@b").request(route.method, path, json={})
        assert own.status_code == 403, "the app's own namespace is one, too"
        unknown = await caller(f"{role}@b").request(route.method, f"/ns/none{path}", json={})
        assert (unknown.status_code, unknown.json()["detail"]) == (403, foreign.json()["detail"])
        nobody = await caller("nobody").request(route.method, f"/ns/a{path}", json={})
        assert nobody.status_code == 401


@pytest.mark.parametrize("role", [*ROLES])
async def test_a_credential_has_its_role_in_its_namespace(caller: Caller, role: str) -> None:
    for route in ROUTES:
        path = re.sub(r"{[^}]*}", "x", route.path)
        if path in OPEN or route.open or path.endswith("/events"):
            continue
        answer = await caller(f"{role}@a").request(route.method, f"/ns/a{path}", json={})
        allowed = route.right is None or Principal(role, ROLES[role]).may(route.right)
        assert (answer.status_code == 403) is not allowed, (route.method, route.path, answer.text)


async def test_the_pages_load_under_the_prefix(caller: Caller) -> None:
    page = await caller("nobody").get("/ns/a/runs", headers={"Accept": "text/html"})
    assert page.status_code == 200
    for found in re.findall(r'(?:src|href)="(\.[^"]*)"', page.text):
        assert (await caller("nobody").get(f"/ns/a/{found.removeprefix('./')}")).status_code == 200, found


def test_a_token_file_names_the_namespaces_of_a_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(f'[ada]\nsha256 = "{fingerprint("x" * 40)}"\nrole = "viewer"\nnamespaces = ["a"]\n')
    found = Tokens(file=file).find("x" * 40)
    assert found is not None
    assert (found.enters("a"), found.enters("b")) == (True, False)


def test_a_new_token_may_be_for_some_namespaces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["token", "new", "ada", "--namespaces", "a", "--namespaces", "b", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    (tmp_path / "tokens.toml").write_text(made["toml"])
    found = Tokens(file=tmp_path / "tokens.toml").find(made["token"])
    assert found is not None
    assert (found.name, found.namespaces) == ("ada", ("a", "b"))


def test_a_name_that_cannot_stand_in_a_path_is_refused() -> None:
    for name in ("", "a/b", "../a", "ä", "x" * 64, "default"):
        with pytest.raises(InvalidOptions, match="namespace"):
            asgi(Rota("memory://"), by_words, namespaces={name: Rota("memory://", namespace="z")})


def test_rota_serve_serves_namespaces(tmp_path: Path) -> None:
    with serving(tmp_path, "memory://", "--namespace", "a", "--no-token") as served:
        made = httpx.post(f"{served.url}/ns/a/api/v1/runs", json={"task": "add", "unknown_ok": True})
        assert made.status_code == 201, made.text
        counts = [len(httpx.get(f"{served.url}{path}/api/v1/runs").json()["items"]) for path in ("", "/ns/a")]
        assert counts == [0, 1]
