"""What people do with one run: retry, retry with edits, cancel, pause, resume, start it now; and undo."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any, Literal

from playwright.async_api import Locator, Page, expect

from rota import Rota, RunFailed, Secret
from rota.app.runs import submit_operation
from rota.client.operations import Operation
from tests.browser.acting import argument, press, run_of
from tests.browser.conftest import OpenRoom
from tests.browser.room import Room

HUGE = 12345678901234567890
"""A number that JavaScript would round."""


class Boom(Exception):
    pass


def an_app() -> Rota:
    app = Rota("memory://", grace=0.1)
    app.task(count)
    app.task(order)
    app.task(steady)
    return app


async def count(n: int) -> int:
    if n < 0:
        raise Boom(f"{n} is too small")
    return n


async def order(
    item: str,
    many: int = 1,
    gift: bool = False,
    size: Literal["small", "large"] = "small",
    note: str | None = None,
    tags: list[str] = [],  # noqa: B006 - a default that JSON has
    card: Annotated[str, Secret] = "",
    number: int = 0,
) -> dict[str, Any]:
    """Take an order."""
    if item == "nothing":
        raise Boom("order something")
    return {
        "item": item,
        "many": many,
        "gift": gift,
        "size": size,
        "note": note,
        "tags": tags,
        "card": card,
        "n": number,
    }


async def steady(n: int = 1) -> None:
    """Run until somebody stops it."""
    await asyncio.Event().wait()


async def failed(app: Rota, task: str, **args: Any) -> str:
    run = await app.submit(task, **args)
    with suppress(RunFailed):
        await run.result()
    return run.id


def state(page: Page) -> Locator:
    return page.locator("h1 .state")


async def opened(room: Room, id: str) -> Page:
    page = await room.open(f"/runs/{id}")
    await expect(state(page)).to_be_visible()
    return page


async def test_retry_makes_a_new_run_and_shows_it(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    id = await failed(app, "count", n=-1)
    page = await opened(room, id)
    await press(page, "Retry")
    await expect(page).not_to_have_url(f"{room.url}/runs/{id}")
    await expect(page.get_by_text("retry of").first).to_be_visible()
    assert (await app.run(await run_of(page))).seen.origin.of == id


async def test_retry_with_edits_asks_by_the_schema_and_keeps_what_nobody_touched(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    id = await failed(app, "order", item="nothing", card="4111", number=HUGE, tags=["a"], note="quick")
    page = await opened(room, id)
    await press(page, "Retry with edits …")
    dialog = page.get_by_role("dialog")
    await argument(dialog, "item").fill("hat")
    await argument(dialog, "many").fill("3")
    await argument(dialog, "gift").select_option("true")
    await argument(dialog, "size").select_option('"large"')
    await dialog.get_by_label("note is null").check()
    await argument(dialog, "tags").fill('["b", "c"]')
    await expect(dialog.get_by_text("hidden: it stays unless you write another value")).to_be_visible()
    assert "4111" not in await page.content()
    await dialog.get_by_label("Why?").fill("the customer called")
    await press(page, "Retry with these arguments")
    await expect(state(page)).to_contain_text("succeeded")
    assert await (await app.run(await run_of(page))).result() == {
        "item": "hat", "many": 3, "gift": True, "size": "large", "note": None, "tags": ["b", "c"], "card": "4111",
        "n": HUGE,
    }  # fmt: skip
    audit = await page.request.get(f"{room.url}/api/v1/audit")
    assert "the customer called" in await audit.text()


async def test_a_form_says_what_does_not_fit_before_and_after_it_is_sent(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    room.watched.expect("422")
    page = await opened(room, await failed(app, "count", n=-1))
    await press(page, "Retry with edits …")
    await argument(page, "n").fill("many")
    await press(page, "Retry with these arguments")
    await expect(page.get_by_role("alert").filter(has_text="n: many is not a whole number")).to_be_visible()
    await argument(page, "n").fill("1.5")
    await press(page, "Retry with these arguments")
    await expect(page.get_by_role("alert").filter(has_text="Expected `int`")).to_be_visible()


async def test_a_cancel_of_a_queued_run_can_be_undone(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    run = await app.tasks["count"].submit(1)
    page = await opened(room, run.id)
    await press(page, "Cancel")
    await expect(state(page)).to_contain_text("cancelled")
    await press(page, "Undo")
    await expect(page.get_by_role("status").filter(has_text="Undone")).to_be_visible()
    depths = await app.depths()
    assert depths["count"].queued == 1


async def test_a_running_run_is_asked_to_stop(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    run = await app.tasks["steady"].submit()
    page = await opened(room, run.id)
    await expect(state(page)).to_contain_text("running")
    await press(page, "Cancel")
    await expect(state(page)).to_contain_text("cancelled")
    assert str((await run.refresh()).state) == "cancelled"


async def test_a_run_is_paused_resumed_and_made_due(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    run = await app.tasks["count"].using(delay=3600).submit(7)
    page = await opened(room, run.id)
    await press(page, "Pause")
    await expect(state(page)).to_contain_text("paused")
    await press(page, "Resume")
    await expect(state(page)).to_contain_text("queued")
    await press(page, "Make due now")
    await expect(state(page)).to_contain_text("succeeded")
    assert await run.result() == 7


async def test_a_run_of_rotas_own_is_not_offered_again(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    kept = await app.submit("count", 1)
    asked = await submit_operation(app.client(), Operation(action="pause", filter={"ids": [kept.id]}))
    page = await room.open(f"/runs/{asked.id}")
    await expect(page.get_by_role("button", name="Delete …")).to_be_visible()
    await expect(page.get_by_role("button", name="Retry")).to_have_count(0)
