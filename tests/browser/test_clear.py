"""What a look tells at once: one line for one cause, who has paused, whether the page is live, all rows that fit."""

import asyncio
import re
from contextlib import AsyncExitStack

from playwright.async_api import expect

from rota import Every, Rota
from rota.store import Backend, ClaimRequest, Report, Stall
from rota.testing import StoreClock
from tests.browser.acting import row
from tests.browser.conftest import OpenRoom, World


async def test_workers_of_one_process_tell_of_its_blocked_loop_once(open_room: OpenRoom) -> None:
    app = Rota("memory://")

    @app.task
    async def mail(to: str) -> None: ...

    room = await open_room(app, works=False)
    store = await app.client().store()
    for name, pid in (("one", 7), ("two", 7), ("three", 8)):
        blocked = Stall("loop", 2.5, f"in the stack of {name}", over_for=3.0)
        await store.claim(ClaimRequest(name, 1, ["mail"], 0, 30, Report(host="vm", pid=pid, stalls=(blocked,))))
    page = await room.open("/")
    told = page.get_by_role("region", name="Needs you").get_by_role("listitem").filter(has_text="was blocked for 2.5 s")
    await expect(told).to_have_count(2)
    await expect(told.filter(has_text="and 1 other worker of its process")).to_have_count(1)
    await room.open("/workers")
    banners = page.locator(".banner").filter(has_text="was blocked for 2.5 s")
    await expect(banners).to_have_count(2)
    await expect(banners.filter(has_text="in the stack of three")).to_have_count(1)


async def test_a_window_that_is_very_tall_shows_all_rows_that_fit(open_room: OpenRoom) -> None:
    app = Rota("memory://")

    @app.task
    async def mail(to: str) -> None: ...

    room = await open_room(app, works=False)
    await app.submit_many([app.tasks["mail"].using(delay=3600).bind(str(n)) for n in range(90)])
    page = await room.open("/runs")
    await expect(page.get_by_role("status").filter(has_text="90 runs")).to_be_visible()
    await page.set_viewport_size({"width": 1280, "height": 3000})
    await expect(page.locator("table.runs tbody tr:not(.spacer)")).to_have_count(90)


async def test_a_key_begins_with_its_state_and_leads_to_all_its_runs(full: World) -> None:
    async with full.page("/keys?key=ada") as room:
        page = room.page
        await expect(page.locator("main h2").first).to_have_text("Remembered")
        await expect(row(page, "charge").first).to_contain_text("breaker open until")
        await page.get_by_role("link", name="All its runs").click()
        await expect(page).to_have_url(re.compile(r"/runs\?key=ada$"))


async def test_a_phone_shows_whether_the_page_is_live(full: World) -> None:
    async with full.page("/tasks", size=(360, 740)) as room:
        page = room.page
        dot = page.get_by_role("button", name="live: pause live changes")
        await expect(dot).to_be_in_viewport()
        await dot.click()
        await expect(page.get_by_role("button", name="paused: go on with live changes")).to_contain_text("paused")


async def test_the_page_of_a_task_says_what_its_numbers_are_about(full: World) -> None:
    async with full.page("/tasks/resize") as room:
        hour = room.page.get_by_role("region", name="The last hour")
        await expect(hour.get_by_role("heading", name="The last hour")).to_be_visible()
        await expect(hour.locator("div").filter(has_text="took (p95)")).to_contain_text(
            re.compile(r"\)\d[\d.]* (ms|s)")
        )


async def test_now_goes_on_telling_of_skipped_ticks_while_the_last_one_made_a_run(open_room: OpenRoom) -> None:
    app = Rota("memory://", grace=0.1)
    gate = asyncio.Event()

    @app.task(schedule=Every(seconds=1), overlap="skip")
    async def read() -> None:
        await gate.wait()

    room = await open_room(app)
    page = await room.open("/")
    line = page.get_by_role("region", name="Needs you").get_by_role("listitem").filter(has_text="read skipped")
    await expect(line).to_contain_text("read skipped its last tick")
    gate.set()
    await expect(line).to_contain_text(re.compile(r"read skipped \d+ ticks?already running, last"))


async def test_a_store_without_anything_says_how_to_begin(empty: World) -> None:
    async with empty.page("/") as room:
        needs = room.page.get_by_role("region", name="Needs you")
        await expect(needs).to_contain_text("Nothing has begun yet")
        await expect(needs).to_contain_text("rota worker -A app")
        await room.open("/why")
        await expect(room.page.get_by_role("heading", name="There is nothing to ask about yet")).to_be_visible()


async def test_a_phone_shows_what_became_of_each_run(full: World) -> None:
    async with full.page("/runs?state=failed", size=(360, 740)) as room:
        rows = room.page.locator("table.runs").get_by_role("row").filter(has_text="broken")
        await expect(rows.get_by_text("Boom").first).to_be_in_viewport()
        edge = await rows.first.bounding_box()
        assert edge is not None
        assert edge["height"] == 52, "all rows have the height by which the list is measured"


async def test_a_phone_shows_which_schedule_fires_next(full: World) -> None:
    async with full.page("/", size=(360, 740)) as room:
        fires = room.page.get_by_role("region", name="Next fires")
        edge = await fires.get_by_role("link", name="weekly").bounding_box()
        assert edge is not None
        assert edge["x"] + edge["width"] <= 360


async def test_a_strip_says_why_a_tick_was_skipped_while_the_next_one_runs(open_room: OpenRoom) -> None:
    goes_on = asyncio.Semaphore(0)

    async def read() -> None:
        await goes_on.acquire()

    def a_worker(store: str | Backend) -> Rota:
        made = Rota(store, grace=0.1)
        made.task(schedule=Every(hours=1), overlap="skip")(read)
        return made

    app = a_worker("memory://")
    room = await open_room(app)
    page = await room.open("/schedules")
    ticks = row(page, "every hour").locator(".strip > *")
    await expect(row(page, "every hour")).to_contain_text("never fired")
    async with AsyncExitStack() as workers:
        for many in (1, 2, 3):
            StoreClock(app.backend).move(hours=1)
            await workers.enter_async_context(a_worker(app.backend))  # it fires at once what is due
            await expect(ticks).to_have_count(many)
            if many == 2:
                goes_on.release()
                await expect(ticks.first).to_have_attribute("data-tone", "good")
        await expect(ticks.last).to_have_attribute("data-tone", "busy")
        await expect(row(page, "every hour").locator(".skipped")).to_have_text("already running")
        goes_on.release()
