"""The pages of the control room, in a real browser: `python -m benchmarks --part pages [--keep] [--lighthouse]`.

Sizes, scrolling, the time line, the way of an event from another process to the screen, and what an idle page asks for.
"""

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from playwright.async_api import Browser, Page, async_playwright
from starlette.types import Scope

from benchmarks.lighthouse import lighthouse
from benchmarks.report import PAGES, machine, write_section
from rota import Cron, Rota
from rota.web import Principal, asgi
from rota.web.rights import rights_of
from tools import browser as browsers
from tools import ui

ASSETS = ui.INDEX.parent / "assets"
TASK = "mail"
SCROLL = """async () => {
    const frames = [];
    let rows = 0, last = performance.now();
    const step = document.body.scrollHeight / 240;
    for (let n = 0; n < 240; n += 1) {
        window.scrollTo(0, n * step);
        await new Promise(requestAnimationFrame);
        const at = performance.now();
        frames.push(at - last);
        last = at;
        rows = Math.max(rows, document.querySelectorAll("table.runs tbody tr").length);
    }
    return {frames, rows, heap: performance.memory ? performance.memory.usedJSHeapSize : 0};
}"""
BRUSH = """async () => {
    const canvas = document.querySelector("canvas"), edge = canvas.getBoundingClientRect(), frames = [];
    const send = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, {
        clientX: edge.left + x, clientY: edge.top + 60, bubbles: true, pointerId: 1}));
    canvas.setPointerCapture = () => undefined;
    send("pointerdown", 10);
    for (let n = 0; n < 60; n += 1) {
        const began = performance.now();
        send("pointermove", 10 + n * 8);
        await Promise.resolve();
        await new Promise(resolve => { const channel = new MessageChannel(); channel.port1.onmessage = resolve;
            requestAnimationFrame(() => channel.port2.postMessage(0)); });
        frames.push(performance.now() - began);
    }
    return frames;
}"""
WATCH = """() => {
    window.seen = {};
    const look = () => { for (const row of document.querySelectorAll("table.runs tbody tr")) {
        const id = row.querySelector(".c-id")?.title;
        if (id && !(id in window.seen) && row.textContent.includes("cancelled")) window.seen[id] = Date.now(); } };
    new MutationObserver(look).observe(document.querySelector("main"),
        {subtree: true, childList: true, characterData: true, attributes: true});
}"""
OTHER = """
import asyncio, sys, time, json
from rota import Cron, Rota
async def main():
    app, ids = Rota(sys.argv[1]), json.loads(sys.stdin.readline())
    sent = {}
    async with app.client():
        await app.client().now()
        for id in ids:
            sent[id] = time.time() * 1000
            await (await app.run(id)).cancel()
            await asyncio.sleep(0.25)
    print(json.dumps(sent))
asyncio.run(main())
"""


def quantiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile."""
    ranked = sorted(values)
    return ranked[len(ranked) // 2], ranked[min(len(ranked) - 1, int(0.95 * len(ranked)))]


def app_at(url: str) -> Rota:
    app = Rota(url, name="bench")

    @app.task(name=TASK)
    async def mail(to: str) -> str:
        return to

    return app


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@asynccontextmanager
async def served(app: Rota) -> AsyncGenerator[str]:
    """Serve an app to everybody, on a free port of this machine."""

    def anybody(scope: Scope) -> Principal:
        return Principal("bench", rights_of("admin"))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(asgi(app, anybody), log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        server = _Quiet(config)
        async with app.client():
            running = asyncio.create_task(server.serve([listening]))
            try:
                yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            finally:
                server.should_exit = True
                await running


@asynccontextmanager
async def opened() -> AsyncGenerator[Browser]:
    found = await asyncio.to_thread(browsers.find)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found.path,
            env={**os.environ, **found.environment},
            args=[*found.arguments, "--enable-precise-memory-info"],
        )
        yield browser
        await browser.close()


async def sizes(page: Page, url: str) -> dict[str, float]:
    """Kilobytes of JavaScript and CSS, by gzip: what the first page loads, and all there is."""
    loaded: dict[str, int] = {}

    async def note(response: Any) -> None:
        if "/assets/" in response.url:
            loaded[response.url] = len(gzip.compress(await response.body()))

    page.on("response", note)
    await page.goto(url)
    await page.locator("main h1").wait_for()
    await page.wait_for_load_state("load")
    every = sum(len(gzip.compress(path.read_bytes())) for path in ASSETS.glob("*.*s"))
    return {"first load, kB": sum(loaded.values()) / 1000, "all chunks, kB": every / 1000}


async def scrolling(page: Page, app: Rota, url: str, runs: int) -> dict[str, float]:
    """Read so many rows into the list, then scroll through all of them in 240 steps."""
    task = app.tasks[TASK]
    for start in range(0, runs, 5_000):
        chunk = range(start, min(runs, start + 5_000))
        await app.submit_many([task.using(delay=86_400).bind(f"user-{n}@example.org") for n in chunk])
    await page.goto(f"{url}/runs?task={TASK}")
    await page.locator("table.runs").wait_for()
    tally = page.locator("main [role=status]").first
    while await tally.inner_text() != f"{runs:,} runs":
        await page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        await page.evaluate("new Promise(requestAnimationFrame)")
    read = int("".join(filter(str.isdigit, await tally.inner_text())))
    await page.evaluate("window.scrollTo(0, 0)")
    found = await page.evaluate(SCROLL)
    p50, p95 = quantiles(found["frames"])
    return {
        "rows read": read,
        "rows in the DOM": found["rows"],
        "frame p50, ms": p50,
        "frame p95, ms": p95,
        "heap, MB": found["heap"] / 1e6,
    }


async def time_line(page: Page, url: str, rows: int, runs: int) -> dict[str, float]:
    """Draw the time line of many runs again and again, while somebody brushes it."""
    each = runs // rows
    items = [
        {
            "name": f"task-{row:03}",
            "segments": [
                {"left": n * 1600 // each, "right": n * 1600 // each + 3, "outcome": "succeeded", "count": 1}
                for n in range(each)
            ],
        }
        for row in range(rows)
    ]
    now = time.time()
    iso = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (now, now - 3600, now + 60)]
    body = json.dumps(
        {"items": items, "next": None, "now": iso[0], "from": iso[1], "to": iso[2], "minutes_before": None}
    )
    await page.route("**/api/v1/timeline?*", lambda route: route.fulfill(content_type="application/json", body=body))
    await page.goto(f"{url}/timeline")
    await page.locator("canvas").wait_for()
    p50, p95 = quantiles(await page.evaluate(BRUSH))
    return {"segments": rows * each, "frame p50, ms": p50, "frame p95, ms": p95}


async def to_pixel(browser: Browser, folder: Path, runs: int) -> dict[str, float]:
    """Milliseconds from before a cancel in another process until its row has changed on the screen."""
    app = app_at(f"sqlite:///{folder}/rota.db")
    async with served(app) as url:
        page = await browser.new_page()
        made = await app.submit_many([app.tasks[TASK].using(delay=86_400).bind(str(n)) for n in range(runs)])
        await page.goto(f"{url}/runs?task={TASK}")
        await page.get_by_role("status").filter(has_text="live").wait_for()
        await page.locator("table.runs").wait_for()
        await page.evaluate(WATCH)
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", OTHER, app.backend.url, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        ids = [run.id for run in made]
        output, _ = await other.communicate(json.dumps(ids).encode() + b"\n")
        sent = json.loads(output)
        await page.wait_for_function("n => Object.keys(window.seen).length >= n", arg=len(sent))
        seen = await page.evaluate("window.seen")
        await page.close()
    p50, p95 = quantiles([seen[id] - at for id, at in sent.items() if id in seen])
    return {"changes": len(sent), "p50, ms": p50, "p95, ms": p95}


async def idle(page: Page, url: str, seconds: float) -> dict[str, float]:
    """Requests of a page on which nothing happens, beside its stream."""
    await page.goto(f"{url}/")
    await page.get_by_role("status").filter(has_text="live").wait_for()
    await asyncio.sleep(4)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await asyncio.sleep(seconds)
    return {"seconds": seconds, "requests": len(asked)}


async def measured(given: argparse.Namespace) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    async with AsyncExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="rota-bench-")))
        browser = await running.enter_async_context(opened())
        app = app_at("memory://")
        url = await running.enter_async_context(served(app))

        async def fresh() -> Page:
            return await browser.new_page(viewport={"width": 1280, "height": 800})

        found["sizes (gzip)"] = await sizes(await fresh(), url)
        found["idle page"] = await idle(await fresh(), url, 5.0)
        found["event in another process to pixel, SQLite"] = await to_pixel(browser, folder, 30)
        found["time line, 200 rows"] = await time_line(await fresh(), url, 200, 50_000)
        found["scrolling"] = await scrolling(await fresh(), app, url, given.rows)
        if given.lighthouse:
            found |= await scores()
    return found


async def scores() -> dict[str, dict[str, float]]:
    """What Lighthouse says of the five main pages, over some runs and a schedule."""
    app = app_at("memory://")
    async with served(app) as url:
        task = app.tasks[TASK]
        runs = await app.submit_many([task.using(delay=86_400).bind(f"user-{n}@example.org") for n in range(200)])
        await app.schedules.put("nightly", Cron("30 2 * * *", tz="Europe/Berlin"), task.bind("ada@example.org"))
        pages = {"Now": "/", "Runs": "/runs", "Run": f"/runs/{runs[0].id}", "Why": f"/why?subject={TASK}"}
        return {
            f"Lighthouse, desktop: {name}": await asyncio.to_thread(lighthouse, url + path)
            for name, path in {**pages, "Schedules": "/schedules"}.items()
        }


def table(found: dict[str, dict[str, float]]) -> str:
    lines = ["| What | Measured |", "|---|---|"]
    for name, values in found.items():
        words = ", ".join(
            f"{what}: {value:,.0f}" if value >= 100 else f"{what}: {value:.3g}" for what, value in values.items()
        )
        lines.append(f"| {name} | {words} |")
    return "\n".join(lines)


def pages(words: Sequence[str]) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks --part pages")
    parser.add_argument("--rows", type=int, default=100_000, help="rows to scroll through")
    parser.add_argument("--lighthouse", action="store_true", help="fetch Lighthouse from npm, and run it too")
    parser.add_argument("--keep", action="store_true", help="write the table into RESULTS.md")
    given = parser.parse_args(words)
    if not ui.is_fresh():
        ui.build()
    text = table(asyncio.run(measured(given)))
    if given.keep:
        write_section(PAGES, f"{machine()}\n\n{text}")
    return text
