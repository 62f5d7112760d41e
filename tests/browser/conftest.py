"""One browser for each process of the tests, and a page that one test after the other uses. No test here is skipped: a
machine without a browser gets one (tools/browser.py)."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from rota import Rota
from tests.browser import world
from tests.browser.room import PATIENCE, Room, log_in, page_of, service
from tools import browser as browsers
from tools import ui

expect.set_options(timeout=PATIENCE)


class OpenRoom(Protocol):
    async def __call__(self, app: Rota, works: bool = True, **options: Any) -> Room: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all tests of this folder run on one loop, on which the browser lives."""
    for item in items:
        if "tests/browser" in item.path.as_posix() and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


def build_pages() -> None:
    """Build the pages of the control room, once for all processes, unless `make` has."""
    browsers.CACHE.mkdir(parents=True, exist_ok=True)
    with (browsers.CACHE / "pages").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ui.is_fresh():
            ui.build()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    await asyncio.to_thread(build_pages)
    found = await asyncio.to_thread(browsers.find)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=found.path,
            env={**os.environ, **found.environment},
            args=[
                *found.arguments,
                "--renderer-process-limit=1",
            ],  # a page that turns to another site keeps its process
        )
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="session")
async def open_room(browser: Browser) -> AsyncIterator[OpenRoom]:
    """Serve an app and open a page on it, logged in; both end with the test."""
    async with AsyncExitStack() as opened:

        async def make(app: Rota, works: bool = True, **options: Any) -> Room:
            url, token = await opened.enter_async_context(service(app, works))
            page, watched = await opened.enter_async_context(page_of(browser, url, **options))
            await log_in(page, url, token)
            return Room(app, url, token, page, watched)

        yield make


class World:
    """One app with something on every page, its service, and a session; shared by tests that change nothing."""

    def __init__(self, browser: Browser, app: Rota, url: str, token: str) -> None:
        self.app = app
        self.url = url
        self.token = token
        self.values: dict[str, str] = {}
        self.expected = ""
        """What its pages may complain of, as a pattern; nothing if it is empty."""
        self.cookies: Any = None
        self._browser = browser

    @asynccontextmanager
    async def page(self, path: str | None, **options: Any) -> AsyncGenerator[Room]:
        """A page at `path`; None: a blank one, on which a test prepares something before it opens its path."""
        async with page_of(self._browser, self.url, **options) as (page, watched):
            if self.cookies is None:
                await log_in(page, self.url, self.token)
                self.cookies = await page.context.cookies()
            await page.context.add_cookies(self.cookies)
            room = Room(self.app, self.url, self.token, page, watched)
            if self.expected:
                watched.expect(self.expected)
            if path is not None:
                await room.open(path.format(**self.values))
            yield room


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def full(browser: Browser) -> AsyncIterator[World]:
    app = world.app()
    async with service(app) as (url, token):
        made = World(browser, app, url, token)
        made.values = await world.fill(app)
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def empty(browser: Browser) -> AsyncIterator[World]:
    app = Rota("memory://")
    async with service(app, works=False) as (url, token):
        yield World(browser, app, url, token)
