"""What a role may not do is not offered, and is refused."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, Page, expect
from starlette.types import Scope

from rota import DailyAt, Period, Rota
from rota.web import Principal, asgi
from rota.web.rights import rights_of
from tests.browser.room import page_of, serving

ACTS = {
    "/runs/{run}": ("Cancel", "Retry", "Pause", "Make due now"),
    "/runs": ("Act on all that match …",),
    "/tasks/add": ("Pause …", "Override …", "Submit …"),
    "/schedules/nightly": ("Run now nightly", "Pause nightly", "Backfill …", "Edit …"),
    "/schedules": ("New schedule …", "Run now nightly"),
    "/flows/orders": ("Reset …", "Start", "Run again"),
    "/workers": ("Start no more runs", "Stop …"),
    "/operations": ("Audit", "Stop", "Undo"),
}
"""What an operator is offered on each page."""
WRITES = [
    ("POST", "runs", {"task": "add", "args": {"a": 1}}),
    ("POST", "runs/{run}/cancel", {}),
    ("POST", "runs/{run}/retry", {}),
    ("PATCH", "runs/{run}", {"priority": 3}),
    ("POST", "operations", {"action": "cancel", "filter": {"task": ["add"]}}),
    ("POST", "tasks/add/pause", {}),
    ("POST", "schedules/nightly/run-now", {}),
    ("PUT", "schedules/other", {"trigger": "daily 02:00 UTC", "task": "add"}),
    ("POST", "flows/orders/start", {}),
    ("DELETE", "marks/add/x", None),
]


def an_app() -> Rota:
    app = Rota("memory://", grace=0.1)

    @app.task
    async def add(a: int) -> int:
        return a

    @app.task
    async def pack() -> None: ...

    orders = app.flow("orders", once=Period.day())
    orders.step(pack)
    return app


@asynccontextmanager
async def seen_by(browser: Browser, role: str) -> AsyncGenerator[tuple[Page, str, str]]:
    """A page of somebody with a role, the address of the service, and a run that waits."""
    app = an_app()

    def auth(scope: Scope) -> Principal:
        return Principal(role, rights_of(role))

    async with app, serving(asgi(app, auth)) as url, page_of(browser, url) as (page, watched):
        watched.expect("403|404")
        run = await app.tasks["add"].using(delay=3600).submit(1)
        await app.schedules.put("nightly", DailyAt(2), app.tasks["add"].bind(1))
        yield page, url, run.id


async def test_a_viewer_is_offered_nothing_that_changes_anything(browser: Browser) -> None:
    async with seen_by(browser, "viewer") as (page, url, run):
        for path, names in ACTS.items():
            await page.goto(url + path.format(run=run))
            await expect(page.locator("main h1").first).to_be_visible()
            await expect(page.locator(".loading")).to_have_count(0)
            for name in names:
                assert await page.locator("main").get_by_role("button", name=name).count() == 0, (path, name)


async def test_an_operator_is_offered_what_a_viewer_is_not(browser: Browser) -> None:
    async with seen_by(browser, "operator") as (page, url, run):
        for path, names in ACTS.items():
            await page.goto(url + path.format(run=run))
            await expect(page.get_by_role("button", name=names[0]).first).to_be_visible()


@pytest.mark.parametrize("role", ["viewer", "submitter"])
async def test_what_is_not_offered_is_refused(browser: Browser, role: str) -> None:
    async with seen_by(browser, role) as (page, url, run):
        await page.goto(f"{url}/me")
        await expect(page.get_by_text("not this: retry, cancel, pause, resume")).to_be_visible()
        for method, path, body in WRITES[0 if role == "viewer" else 1 :]:
            status = await page.evaluate(
                "async ([method, path, body]) => (await fetch(`/api/v1/${path}`, {method, body, headers: body === null"
                " ? {} : {'Content-Type': 'application/json'}})).status",
                [method, path.format(run=run), None if body is None else json.dumps(body)],
            )
            assert status == 403, (method, path)


async def test_a_viewer_sees_no_arguments(browser: Browser) -> None:
    async with seen_by(browser, "viewer") as (page, url, run):
        await page.goto(f"{url}/runs/{run}")
        await expect(page.get_by_text("this role may not read them")).to_be_visible()
