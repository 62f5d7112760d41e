"""Every page: with data, empty, in error, with text that attacks, and for everybody (axe)."""

import json
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.axe import violations
from tests.browser.conftest import World
from tests.browser.world import PLACES, SCRIPT

NAMES = sorted(PLACES)
WITHOUT_READS = ("Me",)
"""Pages that ask nothing but who the visitor is, which every page asks."""
LIGHT = {"size": (1280, 800), "color_scheme": "light"}
DARK = {"size": (360, 740), "color_scheme": "dark"}
PROBLEM = {
    "type": "/problems/store-unavailable",
    "title": "The store does not answer",
    "status": 503,
    "detail": "the store does not answer",
}


async def settled(page: Page) -> None:
    """Wait until the page has its data, or says why it has none."""
    await expect(page.locator("main h1, main .lone, main [role=alert]").first).to_be_visible()
    await expect(page.locator(".loading")).to_have_count(0)


@pytest.mark.parametrize("name", NAMES)
async def test_a_page_with_data_and_attacks_is_whole_and_for_everybody(full: World, name: str) -> None:
    async with full.page(PLACES[name], bypass_csp=True, **LIGHT) as room:
        await settled(room.page)
        assert await room.page.evaluate("window.pwned") is None
        assert await room.page.locator("main script, main img[src=x]").count() == 0
        assert await violations(room.page) == []


@pytest.mark.parametrize("name", NAMES)
async def test_a_page_fits_a_dark_phone(full: World, name: str) -> None:
    async with full.page(PLACES[name], bypass_csp=True, **DARK) as room:
        await settled(room.page)
        wide = await room.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, f"the page is {wide} px wide"
        assert await violations(room.page) == []


@pytest.mark.parametrize("name", NAMES)
async def test_a_page_without_data_teaches(empty: World, name: str) -> None:
    if "{" in PLACES[name] or name in ("Task", "Schedule", "Flow"):
        path = PLACES[name].replace("{run}", "01a1e6e9-99b3-728a-9b7f-0960cb1f8ee1")
    else:
        path = PLACES[name].partition("?")[0]
    async with empty.page(path) as room:
        room.watched.expect("404")
        await settled(room.page)
        assert await room.page.inner_text("main")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_READS])
async def test_a_page_whose_service_has_no_store_says_so(full: World, name: str) -> None:
    async with full.page(None) as room:
        room.watched.expect("503")

        async def fail(route: Route) -> None:
            await route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(PROBLEM))

        await room.page.route(lambda url: "/api/v1/" in url and "/me" not in url, fail)
        await room.open(PLACES[name].format(**full.values))
        await expect(room.page.locator("[role=alert]").filter(has_text="store").first).to_be_visible()
        await expect(room.page.locator("main h1")).to_have_count(1)  # it is still known which page it is


async def test_why_begins_with_what_needs_an_answer(full: World) -> None:
    async with full.page("/why") as room:
        now = room.page.get_by_role("region", name="What needs an answer now")
        await now.get_by_role("button", name="newsletter is paused").click()
        await expect(room.page).to_have_url(re.compile("subject=newsletter"))
        await expect(room.page.locator(".verdict")).to_contain_text("paused")


async def test_the_why_of_a_flow_names_the_step_that_holds_it_up(full: World) -> None:
    async with full.page("/flows/orders") as room:
        await room.page.get_by_role("link", name="Why?").click()
        await expect(room.page.locator(".verdict")).to_contain_text("Blocked by orders/check")


async def test_hostile_text_is_shown_as_text(full: World) -> None:
    async with full.page("/why?subject=newsletter") as room:
        await expect(room.page.get_by_text(SCRIPT).first).to_be_visible()
        assert await room.page.evaluate("window.pwned") is None


@pytest.mark.parametrize("path", ["/runs", "/runs/{run}", "/runs/{done}", "/tasks/resize"])
async def test_nothing_that_is_secret_is_shown(full: World, path: str) -> None:
    async with full.page(path) as room:
        await settled(room.page)
        assert "hunter2" not in await room.text()


@pytest.mark.soak
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", ["full", "empty", "error"])
@pytest.mark.parametrize("name", NAMES)
async def test_axe_finds_nothing_on_any_page_in_any_state(
    full: World, empty: World, name: str, state: str, scheme: str, width: int
) -> None:
    options = {"size": (width, 800), "color_scheme": scheme, "bypass_csp": True}
    world = empty if state == "empty" else full
    values = {"run": "01a1e6e9-99b3-728a-9b7f-0960cb1f8ee1"} | (full.values if state == "full" else {})
    async with world.page(None, **options) as room:
        room.watched.expect("404|503")

        async def fail(route: Route) -> None:
            await route.fulfill(status=503, content_type="application/problem+json", body=json.dumps(PROBLEM))

        if state == "error":
            await room.page.route(lambda url: "/api/v1/" in url and "/me" not in url, fail)
        await room.open(PLACES[name].format(**values))
        await settled(room.page)
        assert await violations(room.page) == []
