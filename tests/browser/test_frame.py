"""The frame around all pages: logging in, keys, the palette, live changes, and what breaks on the way."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Scope

from rota import Rota
from rota.web import Principal, asgi
from rota.web.rights import rights_of
from tests.browser.conftest import OpenRoom, World
from tests.browser.room import log_in, page_of, service, serving

GO = {
    "n": "/", "r": "/runs", "e": "/errors", "y": "/why", "t": "/tasks", "s": "/schedules", "l": "/timeline",
    "c": "/calendar", "f": "/flows", "k": "/keys", "d": "/decisions", "w": "/workers", "o": "/operations",
    "x": "/doctor", "m": "/me",
}  # fmt: skip


BACK = """new Promise(done => {
    const look = () => window.scrollY === 200 ? done() : requestAnimationFrame(look);
    look();
})"""
"""Wait until the page is scrolled to where it was."""


def small_app(url: str = "memory://") -> Rota:
    app = Rota(url)

    @app.task
    async def add(a: int, b: int = 1) -> int:
        return a + b

    return app


async def test_the_token_in_the_address_becomes_a_session_and_leaves_the_address(browser: Browser) -> None:
    async with service(small_app()) as (url, token), page_of(browser, url) as (page, _):
        await page.goto(f"{url}/tasks#token={token}")
        await expect(page.get_by_role("link", name="add")).to_be_visible()
        assert page.url == f"{url}/tasks"
        await page.reload()
        await expect(page.get_by_role("link", name="add")).to_be_visible()


async def test_a_stranger_sees_the_login_and_a_wrong_token_is_refused(browser: Browser) -> None:
    async with service(small_app()) as (url, token), page_of(browser, url) as (page, watched):
        watched.expect("401")
        await page.goto(f"{url}/runs")
        await page.get_by_label("Token").fill("rota_wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("no such token")
        await page.get_by_label("Token").fill(token)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Runs")).to_be_visible()


async def test_a_session_that_ends_shows_the_login(open_room: OpenRoom) -> None:
    room = await open_room(small_app())
    room.watched.expect("401")
    page = await room.open("/tasks")
    await expect(page.get_by_role("link", name="add")).to_be_visible()
    await page.context.clear_cookies()
    await page.keyboard.press("g")
    await page.keyboard.press("d")
    await expect(page.get_by_label("Token")).to_be_visible()


async def test_g_and_a_letter_go_to_every_page(full: World) -> None:
    async with full.page("/me") as room:
        await expect(room.page.locator("main h1")).to_be_visible()
        for letter, path in GO.items():
            await room.page.keyboard.press("g")
            await room.page.keyboard.press(letter)
            await expect(room.page).to_have_url(full.url + path)
            await expect(room.page.locator("nav [aria-current=page]")).to_have_attribute("href", path)


async def test_keys_open_the_help_the_search_and_the_palette(full: World) -> None:
    async with full.page("/tasks") as room:
        page = room.page
        await expect(page.get_by_role("link", name="resize", exact=True)).to_be_visible()
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog")).to_contain_text("Pause or resume live changes")
        await page.keyboard.press("Escape")
        await page.keyboard.press("/")
        await expect(page.locator("#query")).to_be_focused()
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.keyboard.type("doctor")
        await page.keyboard.press("Enter")
        await expect(page.locator("main h1")).to_have_text("Doctor")


async def test_keys_change_the_theme_and_the_zone_and_pause(full: World) -> None:
    async with full.page("/tasks") as room:
        page = room.page
        await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        await page.keyboard.press("p")
        await expect(page.get_by_role("status").filter(has_text="paused")).to_be_visible()
        await page.keyboard.press("t")
        await expect(page.get_by_role("button", name="theme light")).to_be_visible()
        await page.keyboard.press("z")
        await expect(page.get_by_role("button", name="times")).not_to_have_text("times mine")


async def test_the_tab_key_reaches_the_content_first(full: World) -> None:
    async with full.page("/tasks") as room:
        page = room.page
        await expect(page.get_by_role("link", name="resize", exact=True)).to_be_visible()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        here, entries = page.url, await page.evaluate("history.length")
        await page.keyboard.press("Enter")
        await expect(page.locator("#content")).to_be_focused()
        assert (page.url, await page.evaluate("history.length")) == (here, entries)


async def test_another_page_has_the_focus_and_the_way_back_leads_to_the_same_place(full: World) -> None:
    async with full.page("/doctor", size=(1280, 300)) as room:
        page = room.page
        await expect(page.get_by_text("an empty write was taken")).to_be_visible()
        await page.evaluate("window.scrollTo(0, 200)")
        await page.keyboard.press("g")
        await page.keyboard.press("m")
        await expect(page.get_by_role("main", name="Me")).to_be_focused()
        await page.keyboard.press("Tab")
        await expect(page.locator("main :focus")).to_have_count(1)
        assert await page.evaluate("window.scrollY") == 0
        await page.go_back()
        await expect(page.get_by_text("an empty write was taken")).to_be_visible()
        await page.evaluate(BACK)


async def test_a_visitor_who_cannot_be_known_yet_is_told_and_let_in_later(open_room: OpenRoom) -> None:
    room = await open_room(small_app(), works=False)
    room.watched.expect("503")
    away = json.dumps({"title": "The store does not answer", "status": 503, "detail": "the store does not answer"})

    async def fail(route: Route) -> None:
        await route.fulfill(status=503, content_type="application/problem+json", body=away)

    await room.page.route("**/api/v1/me", fail)
    page = await room.open("/tasks")
    await expect(page.get_by_role("alert")).to_contain_text("The store does not answer")
    await page.unroute_all()
    await expect(page.get_by_role("link", name="add")).to_be_visible()


async def test_too_many_logins_while_the_store_was_away_pass_by_themselves(browser: Browser) -> None:
    async with service(small_app()) as (url, token), page_of(browser, url) as (page, watched):
        watched.expect("429")
        many = json.dumps({"title": "too many requests", "status": 429, "detail": "too many logins from this address"})
        headers = {"Retry-After": "3"}

        async def fail(route: Route) -> None:
            await route.fulfill(status=429, headers=headers, content_type="application/problem+json", body=many)

        await page.route("**/api/v1/session", fail, times=1)
        await page.goto(f"{url}/tasks#token={token}")
        await expect(page.get_by_role("alert")).to_contain_text("Too many logins")
        await expect(page.get_by_role("link", name="add")).to_be_visible(timeout=20_000)


async def test_a_change_of_another_process_appears_by_itself(open_room: OpenRoom, tmp_path: Path) -> None:
    app = small_app(f"sqlite:///{tmp_path}/rota.db")
    room = await open_room(app, works=False)
    page = await room.open("/tasks")
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    script = "import asyncio, sys\nfrom tests.browser.test_frame import small_app\n"
    script += "async def main():\n    app = small_app(sys.argv[1])\n    await app.tasks['add'].submit(1)\n"
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script + "asyncio.run(main())", app.backend.url, cwd=Path(__file__).parents[2]
    )
    assert await other.wait() == 0
    await expect(page.get_by_role("row").filter(has_text="add").get_by_role("link", name="1")).to_be_visible()


async def test_a_service_that_is_killed_and_comes_back_is_live_again(browser: Browser) -> None:
    app = small_app()
    async with app.client():
        async with service(app, works=False) as (url, token):
            port = int(url.rpartition(":")[2])
            holder = page_of(browser, url)
            page, watched = await holder.__aenter__()
            watched.expect("ERR_|Failed to load")
            await log_in(page, url, token)
            await page.goto(f"{url}/tasks")
            await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
        await expect(page.get_by_role("status").filter(has_text="reconnecting")).to_be_visible(timeout=10_000)
        for words in ("paused", re.compile("reconnecting|stale")):  # a pause does not make a lost stream live
            await page.keyboard.press("p")
            await expect(page.get_by_role("status").filter(has_text=words)).to_be_visible()
        async with service(app, works=False, port=port, token=token):
            await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible(timeout=20_000)
            await holder.__aexit__(None, None, None)


async def test_the_control_room_lives_under_any_prefix(browser: Browser) -> None:
    app = small_app()

    def operator(scope: Scope) -> Principal:
        return Principal("ops", rights_of("operator"))

    outer = Starlette(routes=[Mount("/a/b", app=asgi(app, operator))])
    async with app.client(), serving(outer) as url, page_of(browser, url) as (page, watched):
        await page.goto(f"{url}/a/b/")
        await expect(page.locator("main h1")).to_have_text("Now")
        await page.goto(f"{url}/a/b/tasks")
        await expect(page.get_by_role("link", name="add")).to_be_visible()
        await page.keyboard.press("g")
        await page.keyboard.press("w")
        await expect(page.locator("main h1")).to_have_text("Workers")
        assert page.url == f"{url}/a/b/workers"
        outside = [each for each in watched.requests if f"{url}/a/b/" not in each]
        assert outside == []


@pytest.mark.parametrize("width", [1280, 360])
async def test_the_frame_and_every_dialog_that_acts_name_the_environment(browser: Browser, width: int) -> None:
    app = Rota("memory://", environment="production")

    @app.task
    async def add(a: int) -> int:
        return a

    async with service(app) as (url, token), page_of(browser, url, size=(width, 740)) as (page, _):
        await page.goto(f"{url}/tasks/add#token={token}")
        shown = page.locator(".badge:visible")
        await expect(shown).to_have_text("environment production")
        await expect(shown).to_have_css("background-color", "rgb(179, 38, 30)")
        await expect(page).to_have_title("production · add · rota")
        await page.get_by_role("button", name="Pause …").click()
        await expect(page.get_by_role("dialog").get_by_text("production")).to_be_visible()


async def test_an_app_that_names_no_environment_shows_none(full: World) -> None:
    async with full.page("/tasks") as room:
        await expect(room.page).to_have_title("Tasks · rota")
        await expect(room.page.locator(".badge")).to_have_count(0)
