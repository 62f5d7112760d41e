"""What all lists share: rows that stay, the keyboard, named views, files; and the palette that acts."""

import asyncio
from contextlib import suppress

from playwright.async_api import Page, expect

from rota import Activity, Every, Refused, Rota
from tests.browser.acting import press, row, said
from tests.browser.conftest import OpenRoom, World

EVIL = "=1+1"


def an_app() -> Rota:
    app = Rota("memory://", grace=0.1)

    @app.task(key="{to}", unique="queued")
    async def mail(to: str) -> str:
        return to

    @app.task(activity=Activity(3600, key="{user}", spacing=7200))
    async def summarise(user: str) -> None: ...

    @app.task(schedule=Every(hours=1))
    async def hourly() -> None: ...

    return app


async def refuse(app: Rota, key: str) -> None:
    """Leave a decision: the second submit of a key is refused."""
    for _ in range(2):
        with suppress(Refused):
            await app.tasks["mail"].using(delay=3600, join="refuse").submit(key)


async def keys_of(page: Page) -> list[str]:
    return await page.get_by_role("region", name="Decisions").locator("td[data-name=key]").all_inner_texts()


async def test_rows_of_a_list_stay_under_the_pointer_and_new_ones_wait(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    for key in ("ada", "bob"):
        await refuse(app, key)
    page = await room.open("/decisions?task=mail")
    await expect(row(page, "already queued")).to_have_count(2)
    await expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    before = await keys_of(page)
    await row(page, before[1]).hover()
    await refuse(app, "cid")
    await refuse(app, before[1])  # its decision is the latest now: it would be the first row
    await expect(page.get_by_role("button", name="1 new row: show")).to_be_visible()
    assert await keys_of(page) == before
    await press(page, "1 new row: show")
    await expect(row(page, "already queued")).to_have_count(3)
    assert (await keys_of(page))[0] == before[1]


async def test_keys_go_from_row_to_row_to_its_actions_and_to_why(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    page = await room.open("/schedules")
    await expect(page.get_by_role("link", name="hourly")).to_be_visible()
    await page.keyboard.press("j")
    await expect(page.get_by_role("link", name="hourly")).to_be_focused()
    await page.keyboard.press(".")
    await expect(page.get_by_role("button", name="Run now hourly")).to_be_focused()
    await page.keyboard.press("k")
    await page.keyboard.press("y")
    await expect(page).to_have_url(f"{room.url}/why?subject=hourly")


async def test_a_view_gets_a_name_and_is_found_again(open_room: OpenRoom) -> None:
    room = await open_room(an_app())
    page = await room.open("/runs?state=failed")
    await page.locator("main h1").wait_for()
    await page.keyboard.press("v")
    await page.get_by_label("Name").fill("My failures")
    await page.keyboard.press("Enter")
    await said(page, "“My failures” is in the list of pages")
    await room.open("/me")
    await page.get_by_role("navigation").get_by_role("link", name="My failures").click()
    await expect(page).to_have_url(f"{room.url}/runs?state=failed")
    await page.keyboard.press("g")
    await page.keyboard.press("m")
    await press(page, "Forget My failures")
    await expect(page.get_by_role("navigation").get_by_role("link", name="My failures")).to_have_count(0)


async def test_columns_of_runs_are_hidden_and_stay_hidden(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    await app.tasks["mail"].using(delay=3600).submit("ada")
    page = await room.open("/runs")
    await expect(page.get_by_text('to="ada"')).to_be_visible()
    await page.get_by_text("Columns", exact=True).click()
    await page.get_by_label("arguments").uncheck()
    await expect(page.get_by_text('to="ada"')).to_be_hidden()
    await page.reload()
    await expect(row(page, "mail")).to_be_visible()
    await expect(page.get_by_text('to="ada"')).to_be_hidden()


async def test_the_palette_pauses_a_task_and_the_toast_undoes_it(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    page = await room.open("/tasks")
    await expect(page.get_by_role("link", name="mail")).to_be_visible()
    await page.keyboard.press("Control+k")
    await expect(page.get_by_label("What to do")).to_be_focused()
    await page.keyboard.type("pause mail")
    await expect(page.get_by_role("option", name="Pause mail act", exact=True)).to_be_visible()
    await page.keyboard.press("Enter")
    await said(page, "Paused mail")
    await expect(row(page, "mail").filter(has_text="paused")).to_be_visible()
    await page.locator(".toast").get_by_role("button", name="Undo").click()
    await said(page, "Undone")
    await expect(row(page, "mail").locator(".pill")).to_have_count(0)


async def test_a_list_is_kept_as_a_file_that_no_spreadsheet_runs(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    await refuse(app, EVIL)
    page = await room.open("/decisions?task=mail")
    async with page.expect_download() as waited:
        await press(page, "CSV")
    kept = await asyncio.to_thread((await (await waited.value).path()).read_text)
    assert f"'{EVIL}" in kept
    assert f",{EVIL}" not in kept


async def test_a_key_shows_how_long_it_rests_and_its_run_is_made_due(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    touched = await app.touch("summarise", "ada")
    page = await room.open("/keys?key=ada")
    await press(page, "Run now summarise")
    await said(page, "Due now")
    await (await app.run(touched.run)).result()
    await app.touch("summarise", "ada")
    await expect(page.get_by_role("region", name="Keys")).to_contain_text("rests until")


async def test_workers_show_what_they_hold(full: World) -> None:
    async with full.page("/workers") as room:
        held = room.page.get_by_role("region", name="Runs in hand")
        await expect(held.get_by_role("row").filter(has_text="transcode")).to_be_visible()


async def test_a_schedule_that_no_code_declares_is_deleted_after_a_question(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    room.watched.expect("404")  # the page may read the schedule once more before it leaves
    await app.schedules.put("extra", Every(hours=2), app.tasks["mail"].bind("ada"))
    page = await room.open("/schedules/extra")
    await press(page, "Delete …")
    await press(page.get_by_role("dialog"), "Delete the schedule")
    await said(page, "extra is deleted")
    await expect(page.get_by_role("link", name="hourly")).to_be_visible()
    assert [each.id for each in await app.schedules.list()] == ["hourly"]
    await room.open("/schedules/hourly")
    await expect(page.get_by_role("button", name="Run now hourly")).to_be_visible()
    await expect(page.get_by_role("button", name="Delete …")).to_have_count(0)


async def test_why_tells_when_a_run_has_started(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await app.pause("mail", "later")
    run = await app.submit("mail", "ada")
    page = await room.open(f"/why?subject={run.id}")
    await press(page, "Tell me when it changes")
    await app.resume("mail")
    await run.result()
    await expect(page.locator(".toast")).to_contain_text("succeeded")
