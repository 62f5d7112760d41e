"""What the tests of actions share: finding buttons, arguments and toasts."""

import re

from playwright.async_api import Locator, Page, expect


async def press(page: Page | Locator, name: str) -> None:
    await page.get_by_role("button", name=name, exact=True).click()


async def said(page: Page, text: str) -> None:
    """Wait for a toast."""
    await expect(page.locator(".toast").filter(has_text=text)).to_be_visible()


def argument(place: Page | Locator, name: str) -> Locator:
    return place.locator(f"#arg-{name}")


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("row").filter(has_text=text)


async def run_of(page: Page) -> str:
    """Wait until the page of a run is shown; return the id of the run."""
    await expect(page).to_have_url(re.compile(r"/runs/[^/?]+$"))
    return page.url.rpartition("/")[2]
