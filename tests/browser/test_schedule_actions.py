"""What people do with schedules: run now, pause until, backfill with a preview, add, edit, and meet a conflict."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Page, expect

from rota import Breaker, Cron, DailyAt, Retry, Rota
from rota.client.audit import Author, acting
from rota.domain.schedule import Schedule
from rota.store import RowQuery
from rota.views.schedules import policy_of
from tests.browser.acting import press, row, said
from tests.browser.conftest import OpenRoom
from tests.browser.room import Room


def an_app() -> Rota:
    app = Rota("memory://", tz="Europe/Berlin", grace=0.1)

    @app.task
    async def report(day: str = "today") -> str:
        return day

    return app


async def put(app: Rota, id: str = "nightly", **more: Any) -> None:
    retry = Retry(7, backoff="linear", delay=3.0)
    call = app.tasks["report"].bind("monday")
    await app.schedules.put(
        id, DailyAt(2, tz="Europe/Berlin"), call, timeout=30, retry=retry, lost="fail", expect="07:00", **more
    )


async def stored(app: Rota, id: str) -> Schedule:
    return (await app.client().rows(Schedule, RowQuery(names=[id]))).items[0]


async def opened(room: Room, id: str = "nightly") -> Page:
    page = await room.open(f"/schedules/{id}")
    await expect(page.locator("main h1")).to_have_text(id)
    return page


async def test_run_now_makes_a_run(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await put(app)
    page = await opened(room)
    await press(page, "Run now nightly")
    await said(page, "nightly runs now")
    found = [run async for run in app.runs(schedule="nightly")]
    assert [(run.seen.origin.kind, run.seen.origin.of) for run in found] == [("run_now", "nightly")]


async def test_a_pause_has_a_note_and_ends_by_itself_or_by_hand(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await app.schedules.put("often", Cron("0 * * * *"), app.tasks["report"].bind("x"))
    page = await opened(room, "often")
    await press(page, "Pause often")
    await page.get_by_label("For how long?").fill("2h")
    await page.get_by_label("Why?").fill("the disk is full")
    await press(page.get_by_role("dialog"), "Pause")
    await expect(page.locator(".banner")).to_have_text(
        re.compile("^Paused by admin .*: “the disk is full”. It goes on by itself at")
    )
    assert (await stored(app, "often")).next_at == pytest.approx(await app.client().now() + 7200, abs=3700)
    await press(page, "Resume often")
    await expect(page.locator(".banner")).to_have_count(0)
    await press(page, "Pause often")
    await page.get_by_label("Why?").fill("for long")
    await press(page.get_by_role("dialog"), "Pause")
    await expect(page.locator(".banner")).to_have_text(
        re.compile("^Paused by admin .*: “for long”. It fires no tick until somebody resumes it.")
    )
    assert (await stored(app, "often")).paused
    await press(page.locator(".toast").last, "Undo")
    await expect(page.locator(".banner")).to_have_count(0)
    assert not (await stored(app, "often")).paused


async def test_a_pause_that_ends_by_itself_needs_no_note_to_be_seen_and_ended(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await app.schedules.put("often", Cron("0 * * * *"), app.tasks["report"].bind("x"))
    await app.schedules.pause("often", until=timedelta(hours=5))
    page = await room.open("/schedules")
    await expect(row(page, "often")).to_contain_text("paused, on in 5 h")
    await press(page, "Resume often")
    await expect(row(page, "often")).not_to_contain_text("paused")
    assert (await stored(app, "often")).next_at == pytest.approx(await app.client().now() + 1800, abs=1801)


async def test_schedules_and_now_say_who_has_paused_a_schedule_and_why(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    await app.schedules.put("nightly", DailyAt(2), app.tasks["report"].bind())
    with acting(Author("grace", "cli")):
        await app.schedules.pause("nightly", "the disk is full")
    page = await room.open("/schedules")
    await expect(row(page, "nightly")).to_contain_text("paused by grace")
    await expect(row(page, "nightly")).to_contain_text("the disk is full")
    await room.open("/")
    line = page.get_by_role("listitem").filter(has_text="The schedule nightly is paused by grace")
    await expect(line).to_contain_text("“the disk is full”; since")
    await press(line, "Resume")
    await said(page, "nightly resumed")
    assert not (await stored(app, "nightly")).paused


async def test_a_paused_schedule_is_resumed(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    await put(app)
    await app.schedules.pause("nightly", "later")
    page = await opened(room)
    await press(page, "Resume nightly")
    await expect(page.get_by_role("button", name="Pause nightly")).to_be_visible()
    assert not (await stored(app, "nightly")).paused


async def test_a_backfill_lists_its_ticks_before_it_makes_runs(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app, works=False)
    await app.schedules.put("often", Cron("0 * * * *"), app.tasks["report"].bind("x"), overlap="allow")
    page = await opened(room, "often")
    await press(page, "Backfill …")
    dialog = page.get_by_role("dialog")
    first = datetime.now(UTC).astimezone() - timedelta(hours=5)
    await dialog.get_by_label("From").fill(first.strftime("%Y-%m-%dT%H:%M"))
    await press(dialog, "Show the ticks")
    await expect(dialog).to_contain_text("would get a run. Nothing has happened yet.")
    ticks = await dialog.locator("time").count()
    assert ticks > 0
    assert [run async for run in app.runs(task="report")] == []
    await press(dialog, f"Make {ticks} run{'s' if ticks > 1 else ''}")
    await said(page, "of often made")
    assert len([run async for run in app.runs(schedule="often")]) == ticks


async def test_a_new_schedule_is_explained_while_it_is_typed(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    room.watched.expect("422")
    page = await room.open("/schedules")
    await press(page, "New schedule …")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("weekly")
    await dialog.get_by_label("When").fill("weekly on someday")
    await expect(dialog.locator(".meaning .bad")).to_be_visible()
    await dialog.get_by_label("When").fill("daily 02:30 Europe/Berlin")
    await expect(dialog.locator(".meaning")).to_contain_text("every day at 02:30, Berlin time")
    await dialog.get_by_label("Task").fill("report")
    await dialog.get_by_label("Arguments").fill('{"day": "sunday"}')
    await press(dialog, "Save")
    await expect(page.get_by_role("link", name="weekly", exact=True)).to_be_visible()
    assert (await stored(app, "weekly")).trigger.startswith("daily 02:30")


@pytest.mark.parametrize(
    "more",
    [{"overlap": "buffer", "buffer": 7, "times": 9}, {"breaker": Breaker(3, cool_down=600)}],
    ids=["buffer", "breaker"],
)
async def test_an_edit_keeps_what_the_form_does_not_show(open_room: OpenRoom, more: dict[str, Any]) -> None:
    app = an_app()
    room = await open_room(app)
    await put(app, **more)
    options = await stored(app, "nightly")
    before = policy_of(await stored(app, "nightly"))
    page = await opened(room)
    await press(page, "Edit …")
    await page.get_by_role("dialog").get_by_label("When").fill("daily 03:30 Europe/Berlin")
    await press(page.get_by_role("dialog"), "Save")
    await said(page, "nightly saved")
    after = await stored(app, "nightly")
    assert after.trigger.startswith("daily 03:30")
    assert policy_of(after) == before
    kept = (options.overlap, options.buffer, options.times, options.guards)
    assert (after.overlap, after.buffer, after.times, after.guards) == kept
    assert (before.timeout, before.lost, before.retry.limit) == (30, "fail", 7)
    assert (await stored(app, "expect:nightly")).deadline is not None


async def test_a_conflict_shows_both_versions_and_nothing_is_lost(open_room: OpenRoom) -> None:
    app = an_app()
    room = await open_room(app)
    room.watched.expect("412")
    await put(app)
    page = await opened(room)
    await press(page, "Edit …")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("When").fill("daily 04:00 Europe/Berlin")
    await app.schedules.put("nightly", DailyAt(5, tz="Europe/Berlin"), app.tasks["report"].bind("theirs"))
    await press(dialog, "Save")
    both = dialog.get_by_role("table")
    await expect(both).to_contain_text("Somebody changed it while you edited")
    await expect(both.get_by_role("row", name="when")).to_contain_text("04:00")
    await expect(both.get_by_role("row", name="when")).to_contain_text("05:00")
    await expect(both.get_by_role("row", name="arguments")).to_contain_text("theirs")
    assert (await stored(app, "nightly")).trigger.startswith("daily 05:00"), "theirs is in force"
    await press(dialog, "Save mine over theirs")
    await said(page, "nightly saved")
    assert (await stored(app, "nightly")).trigger.startswith("daily 04:00")


async def test_all_schedules_that_a_filter_finds_are_paused_until_the_undo(open_room: OpenRoom) -> None:
    app = an_app()
    for name in ("print-a", "print-b", "clean"):
        await app.schedules.put(name, DailyAt(2), app.tasks["report"].bind())
    room = await open_room(app, works=False)
    page = await room.open("/schedules?q=print")
    await press(page, "Pause all 2 shown …")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("print-a, print-b")
    await dialog.get_by_label("Why?").fill("the disk is full")
    await press(dialog, "Pause")
    await said(page, "Paused 2 schedules")
    await expect(row(page, "the disk is full")).to_have_count(2)
    assert {each.id for each in await app.schedules.list() if each.paused} == {"print-a", "print-b"}
    await page.locator(".toast").get_by_role("button", name="Undo").click()
    await said(page, "Resumed 2 schedules")
    assert not [each.id for each in await app.schedules.list() if each.paused]
