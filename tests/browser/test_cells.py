"""What single pages tell and offer beyond their lists: keys of a task, tokens, what may be wrong with a schedule."""

import re
from contextlib import suppress
from datetime import timedelta

from playwright.async_api import expect

from rota import Activity, Breaker, Cron, Rate, Rota, RunFailed
from rota.client.audit import Author, acting
from rota.domain.decision import Reason
from rota.testing import StoreClock
from tests.browser.acting import press, row
from tests.browser.conftest import OpenRoom, World
from tests.browser.test_live import HIDE, live


class Boom(Exception):
    pass


def an_app() -> Rota:
    app = Rota("memory://", grace=0.1)

    @app.task(activity=Activity(0, key="{user}", spacing=0, breaker=Breaker(1, cool_down=3600)))
    async def charge(user: str) -> None:
        if user == "mallory":
            raise Boom("the bank says no")

    @app.task
    async def mail(to: str) -> str:
        return to

    return app


async def charged(app: Rota, user: str) -> None:
    done = await app.touch("charge", user)
    with suppress(RunFailed):
        await (await app.run(done.run)).result()


async def test_a_task_lists_its_keys_and_those_in_trouble_come_first(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    for user in ("ada", "mallory", "bob"):
        await charged(app, user)
    page = await room.open("/tasks/charge")
    keys = page.get_by_role("region", name="Keys")
    await expect(keys.get_by_role("row")).to_have_count(4)
    await expect(keys.get_by_role("row").nth(1)).to_contain_text("mallory")
    await expect(keys.get_by_role("row").nth(1)).to_contain_text("breaker open until")
    await expect(keys.get_by_role("row").filter(has_text="ada")).to_contain_text("free")
    await keys.get_by_role("link", name="mallory").click()
    await expect(page.get_by_role("heading", name="Key mallory")).to_be_visible()
    await room.open("/tasks/mail")
    await expect(page.get_by_role("heading", name="In force")).to_be_visible()
    await expect(keys).to_have_count(0)  # it has no key


async def test_now_tells_of_a_breaker_until_it_is_closed(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await charged(app, "mallory")
    assert (await app.touch("charge", "mallory")).reason is Reason.BREAKER
    page = await room.open("/")
    line = page.get_by_role("listitem").filter(has_text="open for mallory")
    await expect(line).to_contain_text("it closes by itself in 59 min")
    await line.get_by_role("button", name="Close the breaker").click()
    await page.mouse.move(0, 0)  # while the pointer is in the list, its rows stay
    await page.evaluate("document.activeElement.blur()")
    await expect(line).to_have_count(0)


async def test_now_says_who_has_paused_a_task_and_since_when_however_long_ago(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    with acting(Author("grace", "cli")):
        await app.pause("mail", "the new logo is not ready")
    StoreClock(app.backend).move(hours=5)
    page = await room.open("/")
    line = page.get_by_role("listitem").filter(has_text="mail is paused by grace")
    await expect(line).to_contain_text("“the new logo is not ready”; since 5 h")


async def test_a_schedule_says_what_a_clock_change_does_to_it(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    await app.schedules.put("nightly", Cron("30 2 * * *", tz="Europe/Berlin"), app.tasks["mail"].bind("ada"))
    page = await room.open("/schedules/nightly")
    wrong = page.get_by_role("list", name="What may be wrong with it")
    await expect(wrong).to_contain_text("the clock in Europe/Berlin goes forward from 02:00 to 03:00")
    await expect(wrong).to_contain_text("02:30 comes twice: rota fires the first time only")


async def test_why_tells_a_tab_that_nobody_sees(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await app.pause("mail", "later")
    run = await app.submit("mail", "ada")
    page = await room.open(f"/why?subject={run.id}")
    await live(page)
    await press(page, "Tell me when it changes")
    await page.evaluate(HIDE, "hidden")
    await app.resume("mail")
    await run.result()
    await expect(page).to_have_title(re.compile("^● .*succeeded"))
    await page.evaluate(HIDE, "visible")
    await expect(page.locator(".toast")).to_contain_text("succeeded")
    await expect(page).to_have_title(re.compile("^Why"))


async def test_an_answer_leads_to_what_was_asked_about(full: World) -> None:
    async with full.page("/why?subject=newsletter") as room:
        answer = room.page.get_by_role("region", name="Answer")
        await answer.get_by_role("link", name="newsletter", exact=True).click()
        await expect(room.page.get_by_role("button", name="Resume", exact=True)).to_be_visible()


async def test_the_time_line_leads_to_the_runs_of_what_it_shows(full: World) -> None:
    async with full.page("/timeline?last=600000") as room:
        await room.page.get_by_role("link", name="Runs of this time").click()
        await expect(room.page.get_by_label("Search runs")).to_have_value(re.compile(r"^since:20\d\d-\S+Z$"))


async def test_an_admin_sees_who_has_a_token(full: World) -> None:
    async with full.page("/me") as room:
        tokens = room.page.get_by_role("region", name="Tokens")
        await expect(row(room.page, "everything").filter(has_text="admin")).to_be_visible()
        await expect(tokens).to_contain_text("never")


async def test_an_answer_offers_the_cure(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await app.pause("mail", "later")
    run = await app.submit("mail", "ada")
    page = await room.open("/why?subject=mail")
    todo = page.get_by_role("list", name="What to do")
    await todo.get_by_role("button", name="Resume").click()
    await run.result()
    await charged(app, "mallory")
    await room.open("/why?subject=charge&key=mallory")
    await todo.get_by_role("button", name="Close the breaker").click()
    await expect(todo).to_have_count(0)
    assert await app.touch("charge", "mallory")


async def test_what_failed_does_not_look_well(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await charged(app, "mallory")
    (run,) = [each async for each in app.runs(task="charge")]
    page = await room.open(f"/why?subject={run.id}")
    await expect(page.locator(".verdict[data-tone=bad]")).to_contain_text("It failed")


async def test_an_answer_says_when_it_changes_by_itself(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await app.pause("mail", until=timedelta(hours=2, minutes=1))
    run = await app.submit("mail", "ada")
    page = await room.open(f"/why?subject={run.id}")
    await expect(page.locator("main")).to_contain_text("changes by itself in 2 h")


async def test_a_task_shows_what_is_left_of_its_rate(open_room: OpenRoom) -> None:
    app = an_app()

    @app.task(rate=Rate(9, per=3600, burst=4))
    async def letter() -> None: ...

    room = await open_room(app)
    page = await room.open("/tasks/letter")
    await expect(page.locator("main")).to_contain_text("4 may start now, of 9 per 1 h")
