"""What people do with tasks, workers, keys and flows."""

import re
from contextlib import suppress

from playwright.async_api import expect

from rota import Activity, Breaker, Period, Rota, RunFailed
from rota.store import MarkRow, RowQuery, WorkerSeen
from tests.browser.acting import argument, press, row, run_of, said
from tests.browser.conftest import OpenRoom


class Boom(Exception):
    pass


def an_app() -> Rota:
    app = Rota("memory://", grace=0.1)

    @app.task(unique="queued", join="refuse", key="{user}")
    async def greet(user: str, loud: bool = False, times: int = 1) -> str:
        return user.upper() if loud else user * times

    @app.task(activity=Activity(0, key="{user}", spacing=0, breaker=Breaker(1, cool_down=3600)))
    async def charge(user: str) -> None:
        raise Boom("refused")

    broken = [True]

    @app.task
    async def collect() -> list[str]:
        return ["a"]

    @app.task
    async def check(collect: list[str]) -> None:
        if broken.pop():
            broken.append(False)
            raise Boom("not in stock")
        broken.append(False)

    @app.task
    async def ship() -> None: ...

    orders = app.flow("orders", once=Period.day())
    orders.step(collect)
    orders.step(check, after=collect)
    orders.step(ship, after=check)
    return app


async def test_a_task_is_paused_with_a_note_and_resumed(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    page = await room.open("/tasks/greet")
    await press(page, "Pause …")
    await page.get_by_label("Why?").fill("the new logo is not ready")
    await press(page.get_by_role("dialog"), "Pause")
    await expect(page.locator(".banner")).to_have_text(
        re.compile("^Paused by admin .*: “the new logo is not ready”. Its runs wait until somebody resumes it.")
    )
    assert "the new logo is not ready" in (await app.why("greet")).answer
    await press(page, "Resume")
    await expect(page.locator(".banner")).to_have_count(0)
    assert "paused" not in (await app.why("greet")).answer


async def test_a_submit_is_tried_guard_by_guard_and_then_made(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    room.watched.expect("409")
    waiting = await app.tasks["greet"].submit("ada")
    page = await room.open("/tasks/greet")
    await press(page, "Submit …")
    dialog = page.get_by_role("dialog")
    await argument(dialog, "user").fill("ada")
    await press(dialog, "Try: what would happen?")
    trial = dialog.get_by_role("region", name="What would happen")
    await expect(trial).to_contain_text("would make no run: already queued")
    await expect(trial).to_contain_text("refuses")
    await expect(trial.get_by_role("link")).to_have_attribute("href", f"/runs/{waiting.id}")
    await press(dialog, "Submit")
    await expect(dialog.get_by_role("alert")).to_contain_text("already")
    await argument(dialog, "user").fill("grace")
    await argument(dialog, "loud").select_option("true")
    await press(dialog, "Try: what would happen?")
    await expect(trial).to_contain_text("A submit would make a run.")
    assert (await app.depths())["greet"].queued == 1, "a trial makes none"
    await press(dialog, "Submit")
    made = (await app.run(await run_of(page))).seen
    assert (made.key, made.args) == ("grace", b'{"user":"grace","loud":true}')


async def test_a_worker_starts_no_more_runs_then_starts_them_again(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    page = await room.open("/workers")
    await press(page, "Start no more runs")
    await expect(page.get_by_role("button", name="Start runs again")).to_be_visible()
    run = await app.tasks["greet"].submit("ada")
    await expect(row(page, "quiet")).to_be_visible()
    assert str((await run.refresh()).state) == "queued"
    await press(page, "Start runs again")
    assert await run.result(timeout=20) == "ada"


async def test_a_worker_is_stopped_after_a_question(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    other = Rota(app.backend, grace=0.1)
    other.task(an_echo)
    async with other:
        page = await room.open("/workers")
        await press(page, "Stop …")
        await page.get_by_label("Why?").fill("the machine is sold")
        await press(page.get_by_role("dialog"), "Stop the worker")
        await said(page, "then stops")
        await expect(page.locator("summary").filter(has_text="stopped lately")).to_be_visible()
    (seen,) = (await app.client().rows(WorkerSeen)).items
    assert seen.orders.stop


async def an_echo(text: str) -> str:
    return text


async def test_an_open_breaker_is_closed_from_now_and_from_keys(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    room.watched.expect("404")  # the page asks again while the mark is already gone
    for user in ("ada", "bob"):
        done = await app.touch("charge", user)
        with suppress(RunFailed):
            await (await app.run(done.run)).result()
        assert str((await app.touch("charge", user)).reason) == "breaker"
    page = await room.open("/")
    needs = page.get_by_role("region", name="Needs you").get_by_role("listitem")
    await needs.filter(has_text="open for ada").get_by_role("button", name="Close the breaker").click()
    await said(page, "The breaker is closed")
    page = await room.open("/keys?key=bob")
    await expect(page.get_by_role("region", name="Decisions about this key")).to_contain_text("breaker")
    await press(page, "Reset … bob of charge")
    await press(page.get_by_role("dialog"), "Forget it")
    await expect(page.get_by_text("Nothing is remembered of this key")).to_be_visible()
    assert (await app.client().rows(MarkRow, RowQuery(task="charge"))).items == []
    assert await app.touch("charge", "bob")


async def test_a_flow_is_started_its_step_run_again_and_its_period_reset(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    flow = app.flows["orders"]
    page = await room.open("/flows/orders")
    await page.get_by_role("button", name="Start").click()
    steps = page.get_by_role("region", name="Steps", exact=True)
    await expect(row(page, "check").filter(has_text="not in stock")).to_be_visible()
    await steps.get_by_role("row").filter(has_text="not in stock").get_by_role("button", name="Run again").click()
    await page.get_by_label("Why?").fill("the hats have come")
    await press(page.get_by_role("dialog"), "Run again")
    await expect(page.get_by_text("3 of 3 steps done, complete")).to_be_visible()
    status = await flow.status()
    assert status.done
    assert "the hats have come" in await (await page.request.get(f"{room.url}/api/v1/audit")).text()
    await press(page, "Reset …")
    await page.get_by_label("Why?").fill("again, please")
    await press(page.get_by_role("dialog"), "Forget all steps")
    await expect(page.get_by_text("0 of 3 steps done")).to_be_visible()
    assert not (await flow.status()).done
