"""One browser for each process of the tests, one context for each test. No test here is skipped: a machine without a
browser gets one (tools/browser.py)."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, Protocol

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from rota import Rota
from tests.browser.room import Room, log_in, page_of, service
from tools import browser as browsers


class OpenRoom(Protocol):
    async def __call__(self, app: Rota, works: bool = True, **options: Any) -> Room: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all tests of this folder run on one loop, on which the browser lives."""
    for item in items:
        if "tests/browser" in item.path.as_posix() and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    found = await asyncio.to_thread(browsers.find)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=found.path, env={**os.environ, **found.environment}, args=list(found.arguments)
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
