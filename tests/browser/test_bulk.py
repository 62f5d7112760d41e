"""Acting on many runs: a selection, all that match, the dry run, the expected count, undo; by keyboard alone."""

from playwright.async_api import Page, expect

from rota import Rota
from rota.domain.run import State
from tests.browser.acting import press, row, said
from tests.browser.conftest import OpenRoom
from tests.browser.room import Room


def an_app() -> Rota:
    app = Rota("memory://", grace=0.1)

    @app.task
    async def mail(to: str) -> str:
        return to

    @app.task
    async def other() -> None: ...

    return app


async def queued(app: Rota, task: str, state: State = State.QUEUED) -> int:
    return len([run async for run in app.runs(task=task, state=[state])])


async def waiting(app: Rota, many: int) -> None:
    await app.submit_many([app.tasks["mail"].using(delay=3600).bind(f"user-{n}") for n in range(many)])
    await app.tasks["other"].using(delay=3600).submit()


async def listed(room: Room, path: str, many: int) -> Page:
    page = await room.open(path)
    await expect(page.get_by_role("status").filter(has_text=f"{many} runs")).to_be_visible()
    return page


async def test_all_that_match_are_cancelled_after_a_dry_run_and_come_back(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await waiting(app, 7)
    page = await listed(room, "/runs?task=mail", 7)
    await press(page, "Act on all that match …")
    await press(page.get_by_role("toolbar"), "Cancel")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("7 runs are found. Nothing has happened yet.")
    assert await queued(app, "mail") == 7
    await dialog.get_by_label("Why?").fill("wrong list")
    await press(dialog, "Cancel 7 runs")
    await said(page, "7 runs under way")
    await expect(row(page, "cancelled")).to_have_count(7)
    assert (await queued(app, "mail"), await queued(app, "other")) == (0, 1)
    await press(page, "Undo")
    await said(page, "Undo is under way")
    page = await room.open("/operations")
    await expect(row(page, "undo of cancel")).to_contain_text("succeeded")
    await expect(row(page, "wrong list")).to_contain_text("task:mail")
    assert await queued(app, "mail") == 7
    await page.get_by_role("button", name="Audit").click()
    await expect(row(page, "wrong list").first).to_be_visible()


async def test_more_runs_than_the_dry_run_said_are_not_touched(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    room.watched.expect("409")
    await waiting(app, 2)
    page = await listed(room, "/runs?task=mail", 2)
    await press(page, "Act on all that match …")
    await press(page.get_by_role("toolbar"), "Cancel")
    await expect(page.get_by_role("dialog")).to_contain_text("2 runs are found")
    await app.tasks["mail"].using(delay=3600).submit("late")
    await press(page.get_by_role("dialog"), "Cancel 2 runs")
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("3")
    assert await queued(app, "mail") == 3
    await press(page.get_by_role("dialog"), "Try again")
    await expect(page.get_by_role("dialog")).to_contain_text("3 runs are found")


async def test_a_selection_is_made_rescheduled_and_paused_by_keyboard_alone(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await waiting(app, 5)
    page = await listed(room, "/runs?task=mail", 5)
    for key in ("j", "x", "j", "j", "X"):
        await page.keyboard.press(key)
    await expect(page.get_by_role("toolbar")).to_contain_text("3 runs selected")
    await page.keyboard.press(".")
    reschedule = page.get_by_role("toolbar").get_by_role("button", name="Reschedule")
    for _ in range(8):
        if await reschedule.evaluate("node => node === document.activeElement"):
            break
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("3 runs are found")
    await dialog.get_by_label("Due again in").focus()
    await page.keyboard.press("Control+a")
    await page.keyboard.type("2h")
    await page.keyboard.press("Enter")
    await said(page, "3 runs under way")
    await page.keyboard.press("g")
    await page.keyboard.press("o")
    await expect(row(page, "reschedule")).to_contain_text("succeeded")
    now = await app.client().now()
    due = [run.seen.due_at - now async for run in app.runs(task="mail")]
    assert sorted(round(each / 3600) for each in due) == [1, 1, 2, 2, 2]


async def test_ended_runs_are_retried_and_deleted(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    for n in range(3):
        await (await app.submit("mail", f"user-{n}")).result()
    page = await listed(room, "/runs?task=mail", 3)
    await press(page, "Act on all that match …")
    await press(page.get_by_role("toolbar"), "Retry")
    await press(page.get_by_role("dialog"), "Retry 3 runs")
    await expect(page.get_by_role("button", name="3 new runs: show")).to_be_visible()
    await press(page, "3 new runs: show")
    await expect(row(page, "succeeded")).to_have_count(6)
    app.backend.skew += 120  # a run that has just ended is not deleted
    await press(page, "Act on all that match …")
    await press(page.get_by_role("toolbar"), "Delete")
    await press(page.get_by_role("dialog"), "Delete 6 runs")
    await said(page, "6 runs under way")
    page = await room.open("/operations")
    await expect(row(page, "delete")).to_contain_text("succeeded")
    await expect(row(page, "delete").get_by_role("cell", name="6", exact=True)).to_be_visible()
    assert await queued(app, "mail", State.SUCCEEDED) == 0
