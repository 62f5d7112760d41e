"""What an operator says of a task: set it, see it beside the code, meet another's, take it away; pause for a while."""

from playwright.async_api import expect

from rota import Limit, Rota
from rota.domain.spec import TaskSpec
from rota.store import RowQuery
from tests.browser.acting import press
from tests.browser.conftest import OpenRoom


def an_app() -> Rota:
    app = Rota("memory://", grace=0.1)

    @app.task(timeout=300)
    async def resize(path: str) -> str:
        return path

    return app


async def spec_of(app: Rota) -> TaskSpec:
    (found,) = (await app.client().rows(TaskSpec, RowQuery(names=["resize"]))).items
    return found


async def test_an_override_is_set_shown_beside_the_code_and_taken_away(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    page = await room.open("/tasks/resize")
    await press(page, "Override …")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Runs at once").fill("5")
    await dialog.get_by_label("Timeout").fill("soon")
    await dialog.get_by_label("Why?").fill("the disk is slow")
    await press(dialog, "Save")
    await expect(dialog.get_by_role("alert")).to_contain_text("soon is not a span")
    await dialog.get_by_label("Timeout").fill("2m")
    await press(dialog, "Save")
    shown = page.get_by_role("region", name="Overrides")
    await expect(shown).to_contain_text("Set by admin")
    await expect(shown).to_contain_text("the disk is slow")
    await expect(shown).to_contain_text("120s the code says 5 min")
    await expect(page.get_by_text("running, of at most 5")).to_be_visible()
    given = (await spec_of(app)).overrides
    assert given is not None
    assert (given.limit, given.timeout, given.rate, given.retry) == (Limit(5), 120.0, None, None)
    await press(page, "Override …")
    await dialog.get_by_label("Runs at once").fill("")
    await dialog.get_by_label("Timeout").fill("")
    await dialog.get_by_label("The task").select_option("off")
    await press(dialog, "Save")
    await expect(page.locator(".banner")).to_contain_text("An override disables this task")
    await press(page, "Override …")
    await dialog.get_by_label("The task").select_option("")
    await press(dialog, "Save")
    await expect(shown).to_have_count(0)
    assert (await spec_of(app)).in_force().enabled


async def test_two_operators_see_each_others_overrides(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    room.watched.expect("412")
    page = await room.open("/tasks/resize")
    await press(page, "Override …")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Runs at once").fill("5")
    assert await app.override("resize", limit=Limit(7))
    await press(dialog, "Save")
    table = dialog.get_by_role("table", name="Somebody changed it while you edited")
    await expect(table.get_by_role("row", name="limit 5 7")).to_be_visible()
    await press(dialog, "Save mine over theirs")
    await expect(page.get_by_role("region", name="Overrides")).to_contain_text("5 the code says no limit")
    given = (await spec_of(app)).overrides
    assert given is not None
    assert given.limit == Limit(5)


async def test_a_task_is_paused_for_a_while(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    page = await room.open("/tasks/resize")
    await press(page, "Pause …")
    await page.get_by_label("For how long?").fill("2h")
    await press(page.get_by_role("dialog"), "Pause")
    await expect(page.locator(".banner")).to_contain_text("Its runs wait until")
    spec = await spec_of(app)
    assert spec.paused
    assert spec.paused_until is not None
    app.backend.skew += 7201
    page = await room.open("/tasks/resize")
    await expect(page.get_by_role("button", name="Pause …")).to_be_visible()
