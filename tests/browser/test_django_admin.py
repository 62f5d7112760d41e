"""The section of Django's admin in a browser, for everybody (axe)."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import django
import pytest
from playwright.async_api import Browser

from tests.browser.axe import violations

STATIC = Path(django.__file__).parent / "contrib" / "admin" / "static"
THEIRS = """() => document.querySelectorAll(".theme-toggle, .breadcrumbs").forEach(each => each.remove())"""
"""Removes what looks as on every page of Django's admin: its button without a script, its links without a line."""
PAGES = {
    "runs": "/admin/rota/run/",
    "schedules": "/admin/rota/schedule/",
    "tasks": "/admin/rota/task/",
    "flows": "/admin/rota/flow/",
    "workers": "/admin/rota/worker/",
    "a run": "/admin/rota/run/{run}/change/",
    "a schedule": "/admin/rota/schedule/{schedule}/change/",
}


@pytest.fixture(scope="module")
def pages() -> Iterator[dict[str, str]]:
    """Each page as a member of staff gets it, with its styles in it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.settings")
    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.test import Client

    from rota.app.core import core_of
    from rota.django import app

    call_command("migrate", run_syncdb=True, verbosity=0)
    user = User.objects.create_superuser("eve")
    client = Client()
    client.force_login(user)
    try:
        with app.bound_to("memory://"):
            app.portal.call(core_of(app).declare_schedules)
            task = "tests.django.shop.tasks.report"
            names = {"run": app.portal.call(lambda: app.submit(task, user="ada")).id, "schedule": task}
            yield {name: styled(client.get(path.format_map(names)).content.decode()) for name, path in PAGES.items()}
    finally:
        user.delete()


def styled(html: str) -> str:
    """Return the page with the style sheets that it links, and without scripts: it has no server."""

    def sheet(link: re.Match[str]) -> str:
        file = STATIC / link[1].removeprefix("/static/")
        return f"<style>{file.read_text()}</style>" if file.exists() else ""

    html = re.sub(r'<link rel="stylesheet" href="([^"]+)">', sheet, html)
    return re.sub(r"<script[^>]*></script>", "", html)


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_of_the_admin_is_for_everybody(name: str, browser: Browser, pages: dict[str, str]) -> None:
    page = await browser.new_page()
    try:
        await page.set_content(pages[name])
        assert await page.locator("#content-main").count() == 1
        await page.evaluate(THEIRS)
        assert "\n".join(await violations(page)) == ""
    finally:
        await page.close()
