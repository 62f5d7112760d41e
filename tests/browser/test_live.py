"""Live without jumping: rows keep their place, new ones wait, old data is shown as old, and a stream heals."""

import asyncio
from collections.abc import Iterator

import pytest
from playwright.async_api import Page, Route, expect

from rota import Rota
from storekit.servers import RedisServer
from storekit.servers.binaries import redis_of_wheel
from tests.browser.acting import press, row
from tests.browser.conftest import OpenRoom

HIDE = """state => {
    Object.defineProperty(document, "visibilityState", {value: state, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def an_app(url: str = "memory://") -> Rota:
    app = Rota(url, grace=0.1)

    @app.task
    async def mail(to: str) -> str:
        return to

    return app


async def live(page: Page) -> None:
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()


async def ids(page: Page) -> list[str]:
    return await page.locator("table.runs tbody .c-id").all_inner_texts()


async def test_rows_stay_where_they_are_while_they_change_and_new_ones_wait(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    runs = [await app.tasks["mail"].using(delay=3600).submit(f"user-{n}") for n in range(4)]
    page = await room.open("/runs?task=mail")
    await expect(row(page, "queued")).to_have_count(4)
    before = await ids(page)
    top = await row(page, "user-1").bounding_box()
    await row(page, "user-1").get_by_role("checkbox").check()
    await runs[2].cancel()
    await app.tasks["mail"].using(delay=3600).submit("user-new")
    await expect(row(page, "user-2")).to_contain_text("cancelled")
    await expect(page.get_by_role("button", name="1 new run: show")).to_be_visible()
    assert await ids(page) == before
    assert await row(page, "user-1").bounding_box() == top
    assert await row(page, "user-1").get_by_role("checkbox").is_checked()
    await press(page, "1 new run: show")
    await expect(row(page, "user-new")).to_be_visible()
    assert len(await ids(page)) == 5


async def test_a_run_that_is_told_while_its_page_is_on_its_way_is_not_new(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    await app.tasks["mail"].using(delay=3600).submit("ada")
    page = await room.open("/tasks")
    await live(page)
    told = asyncio.Event()

    async def once_told(route: Route) -> None:
        await told.wait()
        await route.continue_()

    await page.route("**/api/v1/runs?*", once_told)
    async with page.expect_request("**/api/v1/runs?*"):
        await page.keyboard.press("g")
        await page.keyboard.press("r")
    async with page.expect_request("**/api/v1/runs/count?*"):  # the page counts again: it has heard of the run
        await app.tasks["mail"].using(delay=3600).submit("bob")
    async with page.expect_response("**/api/v1/runs?*"):
        told.set()
    await expect(row(page, "bob")).to_be_visible()
    async with page.expect_response("**/api/v1/runs?*"):
        await app.tasks["mail"].using(delay=3600).submit("eve")
    await expect(page.get_by_role("button", name="1 new run: show")).to_be_visible()


async def test_a_paused_page_does_not_change_until_it_goes_on(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    run = await app.tasks["mail"].using(delay=3600).submit("ada")
    page = await room.open("/runs?task=mail")
    await expect(row(page, "queued")).to_have_count(1)
    await live(page)
    await page.keyboard.press("p")
    second = await room.page.context.new_page()
    await second.goto(f"{room.url}/runs?task=mail")
    await live(second)
    await run.cancel()
    await expect(row(second, "cancelled")).to_have_count(1)
    await expect(row(page, "queued")).to_have_count(1)
    await page.keyboard.press("p")
    await expect(row(page, "cancelled")).to_have_count(1)


async def test_one_tab_has_the_stream_and_tells_the_others(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    first = await room.open("/tasks")
    await live(first)
    second = await room.page.context.new_page()
    await second.goto(f"{room.url}/tasks")
    await live(second)
    streams = [each for each in room.watched.requests if "/events" in each]
    assert len(streams) == 1
    await app.tasks["mail"].using(delay=3600).submit("ada")
    for page in (first, second):
        await expect(row(page, "mail").get_by_role("link", name="1")).to_be_visible()
    await first.close()
    await app.tasks["mail"].using(delay=3600).submit("bob")
    await expect(row(second, "mail").get_by_role("link", name="2")).to_be_visible()
    streams = [each for each in room.watched.requests if "/events" in each]
    assert len(streams) == 2, "the other tab reads now"


@pytest.mark.parametrize(("path", "news"), [("/tasks", "2"), ("/runs?task=mail", "2 new runs: show")])
async def test_a_hidden_tab_asks_for_nothing_and_reads_again_when_it_is_shown(
    open_room: OpenRoom, path: str, news: str
) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    page = await room.open(path)
    await live(page)
    await expect(page.locator("main h1")).to_be_visible()  # a page reads once when it comes, also in a hidden tab
    await page.evaluate(HIDE, "hidden")
    heard = await app.client().news(0)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    async with page.expect_request("**/health"):  # requests that left before the tab was hidden are told before it
        await page.evaluate("void fetch('/health')")
    asked.clear()
    await app.tasks["mail"].using(delay=3600).submit("ada")
    await app.client().news(5, heard)
    second = await room.page.context.new_page()
    await second.goto(f"{room.url}/runs?task=mail")
    await expect(row(second, "queued")).to_have_count(1)
    await live(second)  # it has the stream now, and tells the hidden tab of what comes
    await app.tasks["mail"].using(delay=3600).submit("bob")
    await expect(second.get_by_role("button", name="1 new run: show")).to_be_visible()
    assert asked == []
    await page.evaluate(HIDE, "visible")
    told = page.get_by_role("link", name=news, exact=True).or_(page.get_by_role("button", name=news, exact=True))
    await expect(told).to_be_visible()


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer(redis_of_wheel()) as started:
        yield started


async def test_a_store_that_goes_down_is_told_and_comes_back_by_itself(
    open_room: OpenRoom, server: RedisServer
) -> None:
    app = an_app(server.url)
    room = await open_room(app, works=False)
    room.watched.expect("503|401|ERR_")
    await app.tasks["mail"].using(delay=3600).submit("ada")
    page = await room.open("/tasks")
    await expect(row(page, "mail").get_by_role("link", name="1")).to_be_visible()
    await asyncio.to_thread(server.kill)
    await page.keyboard.press("g")
    await page.keyboard.press("r")
    alert = page.get_by_role("alert").filter(has_text="store")
    await expect(alert.first).to_be_visible()
    await asyncio.to_thread(server.start)
    await expect(row(page, "queued")).to_have_count(1, timeout=30_000)
    await expect(alert).to_have_count(0)
    await live(page)
