"""The browser of the tests, and what its fixtures notice."""

import json
from pathlib import Path

import pytest
from playwright.async_api import Browser

from rota import Rota
from tests.browser.conftest import OpenRoom
from tests.browser.room import Watched, page_of
from tools import browser as browsers


async def test_a_browser_with_a_session_reads_the_service(open_room: OpenRoom) -> None:
    app = Rota("memory://")

    @app.task
    async def add(a: int, b: int) -> int:
        return a + b

    room = await open_room(app)
    run = await add.submit(1, 2)
    assert await run.result() == 3
    page = await room.open(f"/api/v1/runs/{run.id}")
    shown = json.loads(await page.inner_text("pre"))
    assert (shown["task"], shown["state"]) == ("add", "succeeded")


async def test_a_session_that_ended_reads_nothing(open_room: OpenRoom) -> None:
    room = await open_room(Rota("memory://"))
    room.watched.expect("401")
    await room.page.context.clear_cookies()
    page = await room.open("/api/v1/tasks")
    assert "send a valid token" in await page.inner_text("body")


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("console.error('oh')", "error: oh"),
        ("fetch('http://127.0.0.1:9/x').catch(() => 0)", "Content Security Policy directive"),
        (
            "const s = document.createElement('style'); s.textContent = 'p{}'; document.head.append(s)",
            "style-src 'self'",
        ),
    ],
)
async def test_the_fixtures_notice_what_a_page_may_not_do(open_room: OpenRoom, script: str, complaint: str) -> None:
    room = await open_room(Rota("memory://"))
    page = await room.open("/health")
    async with page.expect_event("console"):
        await page.evaluate(script)
    assert any(complaint in said for said in room.watched.complaints), room.watched.complaints
    room.watched.expect(".")


async def test_the_fixtures_notice_errors_and_requests_to_other_hosts(open_room: OpenRoom) -> None:
    room = await open_room(Rota("memory://"))
    page = await room.open("/health")
    async with page.expect_event("pageerror"):
        await page.evaluate("setTimeout(() => { throw new Error('ouch') })")
    await page.goto(room.url.replace("127.0.0.1", "localhost") + "/health")
    assert [said.partition(":")[0] for said in room.watched.complaints] == ["error", "request to another host"]
    room.watched.expect(".")


async def test_a_page_that_complains_fails_its_test(browser: Browser) -> None:
    watched = Watched("http://127.0.0.1:1")
    watched.complaints.append("error: oh")
    with pytest.raises(AssertionError, match="the page complains"):
        watched.check()
    with pytest.raises(AssertionError, match="the page complains"):
        async with page_of(browser, "http://127.0.0.1:1") as (page, _), page.expect_event("console"):
            await page.evaluate("console.error('oh')")


def test_a_browser_that_does_not_start_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\necho no library >&2\nexit 127\n")
    broken.chmod(0o755)
    with pytest.raises(browsers.NoBrowser, match="does not start: no library"):
        browsers.find({"ROTA_BROWSER": str(broken), "PATH": ""})


def test_a_machine_without_debians_tools_is_told_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(browsers.NoBrowser, match="Debian's packages need apt-get, which is not on PATH"):
        browsers.from_debian()
