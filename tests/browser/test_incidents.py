"""Troubles of the demo: a stranger asks why, and reads the cause and what to do."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from rota.cli.demo.shop import shop
from rota.cli.demo.stage import stage
from tests.browser.conftest import World
from tests.browser.room import service

AT_ONCE = {
    "no worker": ("send_invoice", "", "none knows send_invoice.*start one that imports its code"),
    "paused by somebody": ("newsletter", "", "paused.*by grace.*new logo.*rota tasks resume newsletter"),
    "breaker open": ("charge_card", "mallory", "breaker is open"),
    "limit full": ("transcode", "", "1 of 1 run: the limit is reached"),
    "blocked step": ("ship", "", "blocked by orders/check_stock.*not in stock.*rota flows rerun orders check_stock"),
    "unbindable arguments": ("index_page", "", "arguments do not fit.*missing required field"),
    "poison": ("import_order", "", "failed.*poison"),
    "queue without a worker": ("train_model", "", "no live worker serves queue gpu.*rota worker --queues gpu"),
}
LATER = {
    "failing schedule": ("sync_customers", "", "connection refused"),
    "skipped tick": ("read_prices", "", "skipped|running"),
    "late step": ("expect:orders/ship", "", "late"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def demo(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """The demo as `make run` starts it, without its customers."""
    url = f"sqlite:///{tmp_path_factory.mktemp('demo')}/demo.db"
    shops = [shop(url) for _ in range(3)]
    async with AsyncExitStack() as opened:
        for each in shops[1:]:
            await opened.enter_async_context(each.app)
        address, token = await opened.enter_async_context(service(shops[0].app))
        await stage(shops[0])
        yield World(browser, shops[0].app, address, token)


async def find(demo: World, subject: str, key: str, cause: str, seconds: float) -> None:
    """Go from the first page to the answer, with the keyboard alone."""
    async with demo.page("/") as room:
        page = room.page
        await expect(page.locator("main h1").first).to_be_visible()
        await page.keyboard.press("g")
        await page.keyboard.press("y")
        await page.get_by_label("Task, schedule or id of a run").focus()
        await page.keyboard.type(subject)
        await page.keyboard.press("Tab")
        await page.keyboard.type(key)
        await page.keyboard.press("Enter")
        answer = page.get_by_role("region", name="Answer")
        await expect(answer).to_contain_text(re.compile(cause, re.DOTALL), timeout=seconds * 1000)


@pytest.mark.parametrize("trouble", AT_ONCE)
async def test_a_stranger_finds_the_cause_of_a_trouble(demo: World, trouble: str) -> None:
    await find(demo, *AT_ONCE[trouble], seconds=30)


@pytest.mark.soak
@pytest.mark.parametrize("trouble", LATER)
async def test_a_stranger_finds_the_cause_of_a_trouble_that_takes_its_time(demo: World, trouble: str) -> None:
    await find(demo, *LATER[trouble], seconds=100)
