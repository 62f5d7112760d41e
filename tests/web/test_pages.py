"""The control room as files: who gets them, with which headers, under which path."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp

from rota import Rota
from rota.web import asgi
from rota.web.control_room import Pages
from rota.web.gate import SECURE_HEADERS, Gate
from tests.web.conftest import HOST, by_role

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SCRIPT = "console.log('rota');" * 50

Visit = Callable[..., httpx.AsyncClient]


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text('<script type="module" src="./assets/index-1a.js"></script>')
    (tmp_path / "assets" / "index-1a.js").write_text(SCRIPT)
    (tmp_path / "icon.svg").write_text("<svg/>")
    return Pages(tmp_path)


def visitor(service: ASGIApp, base: str = HOST) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url=base, headers=HTML)


@pytest.fixture
def service(app: Rota, pages: Pages) -> ASGIApp:
    return Gate(asgi(app, by_role, hosts=[]), by_role, [], pages=pages)


@pytest.mark.parametrize(
    ("path", "script"),
    [
        ("/", "./assets/index-1a.js"),
        ("/runs", "./assets/index-1a.js"),
        ("/runs/01a", "../assets/index-1a.js"),
        ("/schedules/nightly%2Freport", "../assets/index-1a.js"),
        ("/flows/daily/2026-03-29", "../../assets/index-1a.js"),
    ],
)
async def test_every_page_finds_its_files_by_a_relative_way(path: str, script: str, service: ASGIApp) -> None:
    async with visitor(service) as browser:
        page = await browser.get(path)
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert f'src="{script}"' in page.text
        assert (await browser.get(str(page.url.join(script)))).text == SCRIPT


async def test_pages_have_the_headers_of_security_and_tell_caches_what_stays(service: ASGIApp) -> None:
    async with visitor(service) as browser:
        page, script = await browser.get("/why"), await browser.get("/assets/index-1a.js")
    for answer in (page, script):
        assert {name: answer.headers[name] for name in SECURE_HEADERS if name != "Cache-Control"} == {
            name: value for name, value in SECURE_HEADERS.items() if name != "Cache-Control"
        }
    assert page.headers["cache-control"] == "no-cache"
    assert "immutable" in script.headers["cache-control"]
    assert script.headers["content-encoding"] == "gzip"
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"


async def test_a_client_of_the_api_is_no_visitor_of_pages(service: ASGIApp) -> None:
    """Without a token it hears 401 for every path, and with one 404: never a page that it did not ask for."""
    async with visitor(service) as browser:
        for path in ("/api/v1/runs", "/api/v1/nothing", "/status", "/metrics"):
            assert (await browser.get(path)).status_code == 401
        assert (await browser.get("/runs", headers={"Accept": "application/json"})).status_code == 401
        assert (await browser.post("/runs")).status_code == 401
        assert (await browser.get("/health")).json() == {"status": "ok"}


async def test_pages_answer_to_the_names_of_the_service_only(service: ASGIApp) -> None:
    async with visitor(service, "http://evil.example") as browser:
        assert (await browser.get("/")).status_code == 421
        assert (await browser.get("/assets/index-1a.js")).status_code == 421


@pytest.mark.parametrize("path", ["/assets/..%2f..%2fsecret", "/assets/%2e%2e/%2e%2e/secret", "/%2fetc/passwd"])
async def test_no_path_leads_out_of_the_folder_of_pages(path: str, service: ASGIApp, tmp_path: Path) -> None:
    (tmp_path.parent / "secret").write_text("not for visitors")
    async with visitor(service) as browser:
        assert "not for visitors" not in (await browser.get(path)).text


async def test_pages_live_under_any_prefix(service: ASGIApp) -> None:
    mounted = Starlette(routes=[Mount("/a", routes=[Mount("/b", app=service)])])
    async with visitor(mounted) as browser:
        page = await browser.get("/a/b/runs/01a")
        assert 'src="../assets/index-1a.js"' in page.text
        assert (await browser.get("/a/b/assets/index-1a.js")).text == SCRIPT
        assert 'src="./assets/index-1a.js"' in (await browser.get("/a/b/")).text


async def test_without_pages_the_service_says_how_to_build_them(app: Rota, tmp_path: Path) -> None:
    pages = Pages(tmp_path / "nothing")
    assert not pages
    async with visitor(Gate(asgi(app), by_role, [], pages=pages)) as browser:
        assert "<code>make ui</code>" in (await browser.get("/")).text
        assert (await browser.get("/assets/index-1a.js")).status_code == 200  # the same page: a browser asks for HTML
