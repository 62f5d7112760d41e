"""Troubles of the demo: a stranger asks why, and reads the cause and what to do."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from rota import Rota
from rota.cli.demo.shop import Shop, shop
from rota.cli.demo.stage import stage, wrong_clock
from rota.client.fleet import is_alive
from rota.domain.decision import Reason
from rota.domain.run import State
from rota.store import WorkerSeen
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
    "failing schedule": ("sync_customers", "", "connection refused"),
    "late step": ("expect:orders/ship", "", "late"),
    "skipped tick": ("read_prices", "", "made no run: an earlier run still ran"),
}
"""Each: what a stranger asks about, its key, and the cause with what to do."""
ON_NOW = {
    "no worker": ("No worker for send_invoice", "Copy", "none knows send_invoice.*start one"),
    "paused by somebody": ("newsletter is paused by grace", "Resume", "new logo.*rota tasks resume newsletter"),
    "breaker open": ("breaker of charge_card is open for mallory", "Close the breaker", "breaker is open"),
    "limit full": ("limit of transcode is full", "See what runs", "the limit is reached"),
    "blocked step": (
        "is failing",
        "Open the flow",
        "blocked by orders/check_stock.*not in stock.*rota flows rerun orders",
    ),
    "poison": ("import_order: 1 run poisoned its worker", "Look at the run", "poison"),
    "queue without a worker": ("No worker for train_model", "Copy", "no live worker serves queue gpu"),
    "failing schedule": ("sync_customers", "Retry them …", "connection refused"),
    "late step": ("orders/ship is late", "Open the flow", "blocked by orders/check_stock"),
    "skipped tick": ("read_prices skipped", "Open the schedule", "an earlier run still ran"),
    "clock skew": ("The clock of shop-", "Ask the doctor", "the store's: set it"),
    "stuck thread": ("thread that does not end", "Look at the workers", "TimeoutError"),
    "unbindable arguments": ("index_page: 1 run failed with InvalidArguments", "Look at the run", "do not fit"),
}
"""Each: what the first page says by itself, what it offers, and what its link `Why?` answers."""
CURES = {
    "no worker": "Start a worker with the code of this task",
    "paused by somebody": "Let its runs start again",
    "breaker open": "close the breaker",
    "limit full": "let more run at once",
    "blocked step": "run that step again",
    "poison": "Read their logs and its arguments before you retry",
    "queue without a worker": "Start a worker that serves this queue",
    "failing schedule": "Read the traceback, mend the cause, then retry",
    "late step": "run that step again",
    "skipped tick": "let it fire less often",
    "clock skew": "Set the clock of that host by NTP",
    "stuck thread": "keeps its seat until its worker is stopped",
    "unbindable arguments": "Retry the run with edits",
}
"""Each: what the answer says is to be done about it."""
PATIENT = 90_000
"""Milliseconds to wait for a trouble: the thread that does not end comes every minute, and stays for 40 seconds."""
SOON = 61
"""Seconds by which the clock of the store is moved: every schedule of the demo that fires within a minute is due."""


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> list[Shop]:
    url = f"sqlite:///{tmp_path_factory.mktemp('demo')}/demo.db"
    return [shop(url, grace=0.1) for _ in range(3)]


def move_clock(shops: list[Shop], seconds: float) -> None:
    for each in shops:
        each.app.backend.skew += seconds


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def demo(browser: Browser, shops: list[Shop]) -> AsyncIterator[World]:
    """The demo as `make run` starts it, without its customers, a minute later."""
    async with AsyncExitStack() as opened:
        await opened.enter_async_context(wrong_clock(shops[-1].app))
        await opened.enter_async_context(shops[1].app)
        address, token = await opened.enter_async_context(service(shops[0].app))
        move_clock(shops, SOON)
        await stage(shops[0])
        await _customers(shops[0].app)
        await _told_of_the_clock(shops[0].app)
        made = World(browser, shops[0].app, address, token)
        made.expected = "status of 503"  # all of it shares one loop: on a busy machine the store is late, once
        yield made


async def _told_of_the_clock(app: Rota) -> None:
    """A worker knows that its clock is wrong when a report has been answered, and says so in the next one."""
    async with asyncio.timeout(PATIENT / 1000):
        while True:
            seen = await app.client().rows(WorkerSeen)
            if any(each.report.ahead and is_alive(each, seen.now) for each in seen.items):
                return
            await app.client().news(0.1)


async def _customers(app: Rota) -> None:
    """More films than one machine can do, and a customer who comes back after the bank has refused the card."""
    for film in "abcdef":
        await app.submit("transcode", film)
    assert (await app.touch("charge_card", "mallory", password="hunter2")).reason is Reason.BREAKER


async def _tried_enough(shops: list[Shop]) -> None:
    """Let the run whose arguments do not fit fail: move the clock of the store to each of its tries."""
    app = shops[0].app
    (waiting,) = [run async for run in app.runs(task="index_page")]
    while (run := await app.client().run(waiting.id)).state is not State.FAILED:
        move_clock(shops, max(0.0, run.due_at - await app.client().now()))
        with suppress(TimeoutError):
            await app.client().ended(run.id, 0.25)


async def find(page: Page, subject: str, key: str, cause: str) -> None:
    """Go from another page to the answer, with the keyboard alone."""
    await page.keyboard.press("g")
    await page.keyboard.press("m")
    await expect(page.get_by_role("heading", name="What I may do")).to_be_visible()
    await page.keyboard.press("g")
    await page.keyboard.press("y")
    await page.get_by_label("Task, schedule or id of a run").focus()
    await page.keyboard.type(subject)
    await page.keyboard.press("Tab")
    await page.keyboard.type(key)
    await page.keyboard.press("Enter")
    answer = page.get_by_role("region", name="Answer")
    await expect(answer).to_contain_text(re.compile(cause, re.DOTALL), timeout=PATIENT)
    await page.evaluate("document.activeElement.blur()")


async def test_a_stranger_asks_why_and_reads_every_cause(demo: World) -> None:
    async with demo.page("/me") as room:
        await expect(room.page.get_by_role("heading", name="What I may do")).to_be_visible()
        for asked in AT_ONCE.values():
            await find(room.page, *asked)


@pytest.mark.parametrize("trouble", ON_NOW)
async def test_a_stranger_sees_the_trouble_at_once_and_what_to_do(demo: World, shops: list[Shop], trouble: str) -> None:
    words, offered, cause = ON_NOW[trouble]
    if trouble == "unbindable arguments":
        await _tried_enough(shops)
    async with demo.page("/") as room:
        page = room.page
        needs = page.get_by_role("region", name="Needs you")
        more = needs.get_by_role("button", name=re.compile("^Show .* other"))
        line = needs.get_by_role("listitem").filter(has_text=words)
        await expect(more.or_(line).first).to_be_visible(timeout=PATIENT)
        if await more.count():
            await more.click()
            await page.mouse.move(0, 0)  # lines that come do not push others away from under the pointer
        await expect(line.first).to_be_visible(timeout=PATIENT)
        await expect(line.first.get_by_role("button", name=offered)).to_be_visible()
        await line.first.get_by_role("link", name="Why?").click()
        answer = page.get_by_role("region", name="Answer")
        await expect(answer).to_contain_text(re.compile(cause, re.DOTALL))
        todo = answer.get_by_role("list", name="What to do")
        await expect(todo).to_contain_text(CURES[trouble])
        if trouble != "clock skew":
            await expect(todo).not_to_contain_text("NTP")  # a wrong clock holds nothing back


async def test_the_way_from_a_wrong_clock_and_a_stuck_thread_to_the_cure(demo: World) -> None:
    await _told_of_the_clock(demo.app)  # a moved clock makes workers silent until their next report
    async with demo.page("/doctor") as room:
        await expect(room.page.get_by_text("set these hosts' clocks (NTP)")).to_be_visible()
        await room.open("/workers")
        await expect(room.page.get_by_text("Set it by NTP").first).to_be_visible()
        stuck = room.page.locator(".banner").filter(has_text="outlived its timeout").first
        await expect(stuck).to_be_visible(timeout=PATIENT)
        await stuck.get_by_text("Where it is now").click()
        await expect(stuck.locator("pre")).to_contain_text("in export_report")
        await stuck.get_by_role("link", name="runs that timed out").click()
        await expect(room.page.get_by_role("link", name="export_report").first).to_be_visible()


async def test_a_flow_says_which_step_is_late_and_when_it_was_expected(demo: World) -> None:
    async with demo.page("/flows/orders") as room:
        step = room.page.get_by_role("region", name="Steps", exact=True).get_by_role("row").filter(has_text="ship").last
        await expect(step).to_contain_text("late: every minute", timeout=PATIENT)


@pytest.mark.parametrize(("broken", "offered"), [("poison", []), ("InvalidArguments", ["Retry with edits …"])])
async def test_errors_offer_no_blind_retry_of_what_would_fail_again(
    demo: World, shops: list[Shop], broken: str, offered: list[str]
) -> None:
    await _tried_enough(shops)
    async with demo.page("/errors") as room:
        group = room.page.get_by_role("listitem").filter(has_text=broken)
        await expect(group.get_by_role("link", name="Look at the run")).to_be_visible()
        await expect(group.get_by_role("button", name="Retry them …")).to_have_count(0)
        await expect(room.page.get_by_role("button", name="Retry them …").first).to_be_visible()
        await group.get_by_role("link", name="Look at the run").click()
        await expect(room.page.get_by_role("button", name="Retry", exact=True)).to_be_visible()
        await expect(room.page.locator("main button.primary")).to_have_text(offered)
