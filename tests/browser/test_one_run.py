"""The page of a run: its way through the states, its log, a change while it waits, and its end."""

import logging

from playwright.async_api import Page, expect

from rota import Retry, Rota
from tests.browser.acting import argument, press, said
from tests.browser.conftest import OpenRoom
from tests.browser.room import Room

log = logging.getLogger("shop.mail")


class Boom(Exception):
    pass


def an_app() -> Rota:
    app = Rota("memory://", grace=0.1)

    @app.task(logs=True, retry=Retry(1, delay=0))
    async def send(to: str, attempts: list[str] | None = None) -> str:
        log.warning("no answer from <b>%s</b>", to)
        raise Boom(to)

    @app.task
    async def wait(note: str = "") -> str:
        return note

    return app


async def opened(room: Room, id: str) -> Page:
    page = await room.open(f"/runs/{id}")
    await expect(page.locator("h1 .state")).to_be_visible()
    return page


async def test_a_run_shows_its_way_and_what_its_handler_logged(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    run = await app.submit("send", "ada")
    await app.client().ended(run.id, 30)
    page = await opened(room, run.id)
    path = page.get_by_role("list", name="Its way through the states")
    await expect(path).to_contain_text("running 2")
    await expect(path).to_contain_text("1 time back in the queue")
    await expect(path.locator("[aria-current=step]")).to_contain_text("failed")
    await expect(page.get_by_label("Log of claim 2")).to_contain_text("no answer from <b>ada</b>")
    await expect(page.get_by_label("Log of claim 1")).to_be_hidden()
    await page.get_by_text("claim 1,").click()
    await expect(page.get_by_label("Log of claim 1")).to_be_visible()


async def test_a_run_that_waits_can_end_anyhow(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    run = await app.tasks["wait"].using(delay=3600).submit()
    page = await opened(room, run.id)
    path = page.get_by_role("list", name="Its way through the states")
    await expect(path.locator("[aria-current=step]")).to_contain_text("queued")
    await expect(path.get_by_role("listitem")).to_have_count(5)


async def test_a_run_that_waits_is_changed(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    run = await app.tasks["wait"].using(delay=3600).submit("old")
    before = await app.run(run.id)
    page = await opened(room, run.id)
    await press(page, "Change …")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Due in").fill("2h")
    await dialog.get_by_label("Priority").fill("7")
    await argument(dialog, "note").fill("new")
    await press(dialog, "Save")
    await said(page, "The run is changed")
    changed = (await app.run(run.id)).seen
    assert changed.priority == 7
    assert changed.due_at > before.seen.due_at + 3000
    await expect(page.get_by_label("Arguments")).to_contain_text("new")


async def test_who_changes_a_run_sees_what_somebody_else_has_changed(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    room.watched.expect("412")
    run = await app.tasks["wait"].using(delay=3600).submit("old")
    page = await opened(room, run.id)
    await press(page, "Change …")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Priority").fill("7")
    assert await run.update(priority=3)
    await expect(page.locator(".details > div").filter(has_text="priority")).to_contain_text("3")
    await press(dialog, "Save")
    versions = dialog.get_by_role("row").filter(has_text="priority")
    await expect(versions.get_by_role("cell")).to_have_text(["7", "3"])
    assert (await app.run(run.id)).seen.priority == 3
    await press(dialog, "Save mine over theirs")
    await said(page, "The run is changed")
    assert (await app.run(run.id)).seen.priority == 7


async def test_a_run_that_ended_is_deleted_after_a_question(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    room.watched.expect("404|410")  # the page may read the run once more before it leaves
    run = await app.submit("send", "ada")
    await app.client().ended(run.id, 30)
    app.backend.skew += 3600  # runs that have just ended stay for a while: a repeated submit must find them
    page = await opened(room, run.id)
    await press(page, "Delete …")
    await press(page.get_by_role("dialog"), "Delete it")
    await said(page, "Deleted")
    await expect(page).to_have_url(f"{room.url}/runs?task=send")
    assert [each async for each in app.runs(task="send")] == []
