"""`make screenshots`: takes pictures of the control room over the demo: those of the docs, or of all pages to look at.

`python -m tools.screenshots --all FOLDER` takes every page, light and dark, at 360, 1280 and 1920 pixels.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tools import browser as browsers
from tools import ui

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
PAGES = {
    "now": "/",
    "runs": "/runs",
    "run": "/runs/{failed}",
    "errors": "/errors",
    "why": "/why?subject=newsletter",
    "tasks": "/tasks",
    "task": "/tasks/charge_card",
    "schedules": "/schedules",
    "schedule": "/schedules/read_prices",
    "timeline": "/timeline?last=600000",
    "calendar": "/calendar?view=month",
    "flows": "/flows",
    "flow": "/flows/orders",
    "keys": "/keys?key=mallory",
    "decisions": "/decisions",
    "workers": "/workers",
    "operations": "/operations",
    "doctor": "/doctor",
    "me": "/me",
}
DOCS = ("now", "runs", "run", "why", "schedules", "timeline", "task", "flow")
"""The pages whose pictures docs/control-room.md has."""
SCHEMES = ("light", "dark")
SIZES = {360: 740, 1280: 800, 1920: 1080}
LARGEST = 200_000
"""Bytes of a picture of the docs."""
WARM_UP = 60.0
"""Seconds in which the demo gets something to show."""
REST = 500.0
"""Milliseconds for what a page reads beside the rest: its small charts."""
FAILED = """async () => {
    const {items} = await (await fetch("/api/v1/runs?limit=100&state=failed")).json();
    return items.sort((one, two) => two.attempts.length - one.attempts.length)[0]?.id;
}"""
"""The failed run with the most attempts."""
WITHOUT_PATHS = """root => { const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll(root, "/srv"); }"""
"""A traceback has the folder of the checkout, which is nobody's business."""


@contextmanager
def demo() -> Iterator[tuple[str, str]]:
    """Run the demo; yield its address and its token."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "rota", "demo", "--port", "0", "--url", f"sqlite:///{folder}/demo.db"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            line = next(line for line in running.stdout if line.startswith("control room: "))
            parts = re.search(r"(http://[^/]+)/#token=(\S+)", line)
            assert parts is not None, line
            try:
                yield parts[1], parts[2]
            finally:
                running.terminate()


@contextmanager
def logged_in(address: str, token: str) -> Iterator[Page]:
    found = browsers.find()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.path, env={**os.environ, **found.environment}, args=list(found.arguments)
        )
        page = browser.new_context(timezone_id="Europe/Berlin", reduced_motion="reduce").new_page()
        page.goto(f"{address}/#token={token}")
        page.locator("main h1").first.wait_for()
        page.wait_for_timeout(WARM_UP * 1000)
        yield page
        browser.close()


def take(page: Page, address: str, name: str, scheme: str, width: int, path: Path) -> None:
    page.set_viewport_size({"width": width, "height": SIZES[width]})
    page.emulate_media(color_scheme="light" if scheme == "light" else "dark")
    page.goto(address + PAGES[name].format(failed=page.evaluate(FAILED)))
    page.locator("main h1").first.wait_for()
    while page.locator(".loading").count():
        page.locator(".loading").first.wait_for(state="detached")
    page.wait_for_timeout(REST)
    page.evaluate(WITHOUT_PATHS, str(ROOT))
    page.screenshot(path=path)
    size = path.stat().st_size
    print(f"{path.name}  {size:,} bytes{'  TOO LARGE' if path.parent == IMAGES and size > LARGEST else ''}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots", description=__doc__)
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="every page in every size, to look at")
    chosen = parser.parse_args()
    if not ui.is_fresh():
        ui.build()
    folder = chosen.all or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    with demo() as (address, token), logged_in(address, token) as page:
        if chosen.all is None:
            for name, scheme in itertools.product(DOCS, SCHEMES):
                take(page, address, name, scheme, 1280, folder / f"{name}-{scheme}.png")
            return
        for name in PAGES:
            for width in SIZES:
                for scheme in SCHEMES:
                    take(page, address, name, scheme, width, folder / f"{name}-{width}-{scheme}.png")


if __name__ == "__main__":
    main()
