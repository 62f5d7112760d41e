"""`make screenshots`: takes pictures of the control room over the demo, light and dark, for the docs."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tools import browser as browsers
from tools import ui

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PAGES = {
    "now": "/",
    "runs": "/runs",
    "why": "/why?subject=newsletter",
    "tasks": "/tasks",
    "schedules": "/schedules",
    "errors": "/errors",
    "workers": "/workers",
}
SIZE = (1280, 800)
LARGEST = 100_000
"""Bytes of a picture."""
WARM_UP = 30.0
"""Seconds in which the demo gets something to show."""


def pictures(browser: Browser, address: str, token: str, names: list[str]) -> None:
    """Take the pictures; the first page logs in."""
    context = browser.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}, timezone_id="Europe/Berlin")
    page = context.new_page()
    page.goto(f"{address}/#token={token}")
    page.locator("main h1").first.wait_for()
    page.wait_for_timeout(WARM_UP * 1000)
    for name in names:
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
            page.goto(address + PAGES[name])
            page.locator("main h1").first.wait_for()
            page.locator(".loading").wait_for(state="detached")
            path = IMAGES / f"{name}-{scheme}.png"
            page.screenshot(path=path)
            size = path.stat().st_size
            print(f"{path.relative_to(ROOT)}  {size:,} bytes{'  TOO LARGE' if size > LARGEST else ''}")
    context.close()


def main() -> None:
    names = sys.argv[1:] or list(PAGES)
    if not ui.is_fresh():
        ui.build()
    IMAGES.mkdir(parents=True, exist_ok=True)
    found = browsers.find()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "rota", "demo", "--port", "0", "--url", f"sqlite:///{folder}/demo.db"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
            assert demo.stdout is not None
            line = next(line for line in demo.stdout if line.startswith("control room: "))
            parts = re.search(r"(http://[^/]+)/#token=(\S+)", line)
            assert parts is not None, line
            try:
                with sync_playwright() as playwright:
                    browser = playwright.chromium.launch(
                        executable_path=found.path,
                        env={**os.environ, **found.environment},
                        args=list(found.arguments),
                    )
                    pictures(browser, parts[1], parts[2], names)
                    browser.close()
            finally:
                demo.terminate()


if __name__ == "__main__":
    main()
