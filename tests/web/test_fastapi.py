"""rota.fastapi: the engine runs with the server, requests submit runs, and tests need nothing special."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
import pytest
from asgi_lifespan import LifespanManager
from fastapi import APIRouter, Depends, FastAPI, HTTPException
from fastapi.testclient import TestClient
from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

import rota.fastapi
from rota import InvalidOptions, Rota
from rota.fastapi import Tasks as BackgroundTasks
from rota.store import Store
from rota.stores.memory import MemoryBackend
from rota.web import Principal, lifespan
from rota.web.rights import rights_of

App = Annotated[Rota, Depends(rota.fastapi.get)]


class Counting(MemoryBackend):
    """Counts the stores that are open."""

    open_now = opened = 0

    @asynccontextmanager
    async def _counted(self) -> AsyncGenerator[Store]:
        async with super().open() as store:
            self.open_now, self.opened = self.open_now + 1, self.opened + 1
            try:
                yield store
            finally:
                self.open_now -= 1

    def open(self) -> Any:
        return self._counted()


def site(backend: MemoryBackend | None = None, **options: Any) -> tuple[FastAPI, Rota, list[str]]:
    """The example of FastAPI's page on background tasks, with one import changed and a task for its function."""
    app, api, sent = Rota(backend or MemoryBackend(), **options), FastAPI(), list[str]()

    def language() -> str:
        return "en"

    @app.task
    def write_notification(email: str, message: str = "", words: str = Depends(language)) -> str:
        sent.append(f"{email}: {message} ({words})")
        return email

    @api.post("/send-notification/{email}")
    async def send_notification(email: str, background_tasks: BackgroundTasks) -> dict[str, str]:
        background_tasks.add_task(write_notification, email, message="some notification")
        if email == "nobody":
            raise HTTPException(404)
        return {"message": "Notification sent in the background"}

    @api.post("/plain/{email}")
    def plain(email: str, background_tasks: BackgroundTasks) -> None:
        background_tasks.add_task(write_notification.fn, email)

    @api.post("/wait/{email}")
    async def wait(email: str, app: App) -> Any:
        return await (await app.submit("write_notification", email)).result(timeout=10)

    @api.post("/refused")
    def refused(background_tasks: BackgroundTasks) -> None:
        background_tasks.add_task(site)

    api.dependency_overrides[language] = lambda: "de"
    rota.fastapi.install(api, app, auth=lambda scope: Principal("all", rights_of("admin")))
    return api, app, sent


def test_with_the_test_client_the_engine_runs() -> None:
    api, app, sent = site()
    with TestClient(api, raise_server_exceptions=False) as client:
        assert client.post("/wait/ada").json() == "ada"
        assert client.post("/send-notification/bob").status_code == 200
        assert client.post("/send-notification/nobody").status_code == 404
        assert client.post("/plain/eve").status_code == 200
        assert client.post("/refused").status_code == 500
        stored = client.get("/rota/api/v1/runs", headers={"host": "localhost"}).json()
        assert [run["task"] for run in stored["items"]] == ["write_notification"] * 3
    assert sorted(sent) == ["ada:  (de)", "bob: some notification (de)", "eve:  (de)"]
    assert app.status().running is False


async def test_with_a_lifespan_manager_the_engine_runs() -> None:
    api, _, sent = site()
    async with (
        LifespanManager(api),
        httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://localhost") as client,
    ):
        assert (await client.post("/wait/ada")).json() == "ada"
    assert sent == ["ada:  (de)"]


async def test_without_a_lifespan_requests_submit_and_leave_no_store_open(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "rota.web")
    backend = Counting()
    api, app, sent = site(backend)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://localhost") as client:
        for number in range(1000):
            assert (await client.post(f"/send-notification/u{number}")).status_code == 200
    assert (backend.open_now, backend.opened, sent) == (0, 1000, [])
    assert (await app.depths())["write_notification"].queued == 1000
    await app.stop()
    assert [record.message for record in caplog.records] == [
        "no engine runs in this process, runs are only submitted: the lifespan did not run, the server or the test "
        "sends none"
    ]


def test_a_test_client_outside_a_block_leaves_no_store_open() -> None:
    backend = Counting()
    api, _, sent = site(backend)
    client = TestClient(api)
    for number in range(30):
        assert client.post(f"/send-notification/u{number}").status_code == 200
    assert (backend.open_now, backend.opened, sent) == (0, 30, [])


def test_an_app_that_is_mounted_says_why_nothing_runs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "rota.web")
    api, app, _ = site()
    outer = FastAPI()
    outer.mount("/inner", api)
    with TestClient(outer) as client:
        assert client.post("/inner/send-notification/ada").status_code == 200
    assert "it is mounted at /inner, and servers run the lifespan of the outermost app only" in caplog.text
    outer = FastAPI()
    outer.mount("/inner", api)
    rota.fastapi.install(outer, app)
    with TestClient(outer) as client:
        assert client.post("/inner/wait/ada").json() == "ada"


def noting(words: list[str], name: str) -> Any:
    @asynccontextmanager
    async def noted(_: Any) -> AsyncIterator[dict[str, str]]:
        words.append(f"{name} up")
        yield {name: "state", "last": name}
        words.append(f"{name} down")

    return noted


def resources(words: list[str]) -> Any:
    @asynccontextmanager
    async def engine() -> AsyncIterator[None]:
        words.append("engine up")
        yield
        words.append("engine down")

    return engine


def test_lifespans_compose_and_their_states_are_merged() -> None:
    words: list[str] = []
    app = Rota("memory://", resources=resources(words))
    api = FastAPI(lifespan=rota.fastapi.lifespan(app, inner=noting(words, "inner"), outer=noting(words, "outer")))
    with TestClient(api) as client:
        assert client.app_state == {"outer": "state", "inner": "state", "last": "inner"}
    assert words == ["outer up", "engine up", "inner up", "inner down", "engine down", "outer down"]


def test_however_lifespans_nest_there_is_one_engine() -> None:
    for nesting in range(9):
        words: list[str] = []
        app, mine = Rota("memory://", resources=resources(words)), noting(words, "mine")
        api: Any
        if nesting == 0:
            api = Starlette(lifespan=rota.fastapi.lifespan(app))
        elif nesting == 1:
            api = FastAPI(lifespan=rota.fastapi.lifespan(app, inner=mine))
        elif nesting == 2:
            api = FastAPI(lifespan=rota.fastapi.lifespan(app, outer=rota.fastapi.lifespan(app)))
        else:
            api = FastAPI(lifespan=mine if nesting in (3, 4) else rota.fastapi.lifespan(app))
            if nesting != 3:
                rota.fastapi.install(api, app)
                rota.fastapi.install(api, app)
            if nesting == 5:
                router = APIRouter(lifespan=rota.fastapi.lifespan(app))
                api.include_router(router)
            if nesting == 6:
                outer = FastAPI(lifespan=rota.fastapi.lifespan(app))
                outer.mount("/inner", api)
                api = outer
            if nesting in (3, 7, 8):
                api = lifespan(api, app)
            if nesting == 8:
                api = lifespan(lifespan(api, app), app)
        with TestClient(api):
            assert app.status().running is True
        assert words.count("engine up") == words.count("engine down") == 1, f"nesting {nesting}"
        assert app.status().running is False


async def bare(scope: Scope, receive: Receive, send: Send) -> None:
    """An ASGI application that knows no lifespan."""
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 204})
    await send({"type": "http.response.body"})


def test_any_asgi_application_can_have_an_engine() -> None:
    app = Rota("memory://")
    with TestClient(lifespan(bare, app)) as client:
        assert app.status().running is True
        assert client.get("/").status_code == 204
    assert app.status().running is False


@asynccontextmanager
async def broken(*_: object) -> AsyncIterator[None]:
    if "no" in "no disk":
        raise OSError("no disk")
    yield


@pytest.mark.parametrize("way", ["install", "lifespan", "wrapped", "inner"])
def test_a_start_that_fails_fails_the_start_of_the_server(way: str) -> None:
    app = Rota("memory://", resources=None if way == "inner" else broken)
    api: Any = FastAPI(lifespan=broken if way == "inner" else rota.fastapi.lifespan(app) if way == "lifespan" else None)
    if way == "install":
        rota.fastapi.install(api, app)
    if way in ("wrapped", "inner"):
        api = lifespan(api, app)
    with pytest.raises((OSError, RuntimeError)), TestClient(api):
        raise AssertionError("it started")
    assert app.status().running is False


async def test_the_lifespan_of_any_application_answers_as_servers_expect() -> None:
    sent: list[str] = []

    async def talk(asgi: Any) -> list[str]:
        sent.clear()
        to: asyncio.Queue[Any] = asyncio.Queue()

        async def send(message: Any) -> None:
            sent.append(message["type"])
            if message["type"].endswith("startup.complete"):
                await to.put({"type": "lifespan.shutdown"})

        await to.put({"type": "lifespan.startup"})
        await asgi({"type": "lifespan", "state": {}}, to.get, send)
        return sent

    assert await talk(lifespan(bare, Rota("memory://"))) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    failing = lifespan(bare, Rota("memory://", resources=broken))
    with pytest.raises(OSError, match="no disk"):
        await talk(failing)
    assert sent == ["lifespan.startup.failed"]


def test_one_app_at_a_time_is_installed() -> None:
    api, app, _ = site()
    rota.fastapi.install(api, app)
    with pytest.raises(InvalidOptions, match="another app of rota is installed here"):
        rota.fastapi.install(api, Rota("memory://"))
    with pytest.raises(InvalidOptions, match="a path such as /rota"):
        rota.fastapi.install(FastAPI(), app, at="rota/")


async def test_a_handler_may_ask_for_the_app() -> None:
    app = Rota("memory://")

    @app.task
    async def name(app: App) -> str:
        return type(app).__name__

    async with app:
        assert await (await app.submit("name")).result(timeout=10) == "Rota"


@pytest.mark.parametrize("missing", ["fastapi", "prometheus_client"])
def test_a_missing_package_names_the_install_command(missing: str) -> None:
    """FastAPI itself is often there; what the service needs beside it may be missing."""
    code = f"import sys; sys.modules[{missing!r}] = None; import rota.fastapi"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert f'MissingExtra: rota.fastapi needs {missing}: pip install "rota[fastapi]"' in done.stderr
