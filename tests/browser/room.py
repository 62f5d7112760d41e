"""A control room in a real browser: a service on a free port of this machine, a page, and what the page did wrong."""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, ViewportSize, WebError
from starlette.types import ASGIApp

from rota import Rota
from rota.web.server import Credentials, Place, by_token, serve
from rota.web.tokens import Tokens, new_token

PATIENCE = 15_000
"""Milliseconds for which a test waits until the page shows something."""
SIZE = (1280, 800)


class Watched:
    """Collects what no page may do: errors on the console, breaches of the CSP, requests to other hosts."""

    def __init__(self, url: str) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._origin = re.match(r"\w+://[^/]+", url)
        self._expected: list[str] = []

    def expect(self, pattern: str) -> None:
        """Let complaints that match pass: a test that stops the service makes the browser complain."""
        self._expected.append(pattern)

    def attach(self, context: BrowserContext) -> None:
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)

    def detach(self, context: BrowserContext) -> None:
        context.remove_listener("console", self._on_console)
        context.remove_listener("weberror", self._on_error)
        context.remove_listener("request", self._on_request)

    def _on_error(self, error: WebError) -> None:
        self.complaints.append(f"error: {error.error}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url')})")

    def _on_request(self, request: Request) -> None:
        self.requests.append(f"{request.method} {request.url}")
        origin = "" if self._origin is None else self._origin[0]
        if not request.url.startswith((f"{origin}/", "data:", "blob:", "about:")):
            self.complaints.append(f"request to another host: {request.url}")

    def check(self) -> None:
        bad = [said for said in self.complaints if not any(re.search(each, said) for each in self._expected)]
        assert not bad, "the page complains:\n" + "\n".join(bad)


class Room:
    """One app, its service and one page."""

    def __init__(self, app: Rota, url: str, token: str, page: Page, watched: Watched) -> None:
        self.app = app
        self.url = url
        self.token = token
        self.page = page
        self.watched = watched

    async def open(self, path: str = "/") -> Page:
        """Open a page of the control room as somebody who has logged in."""
        await self.page.goto(self.url + path, wait_until="domcontentloaded")
        return self.page

    async def text(self) -> str:
        return await self.page.inner_text("body")


@asynccontextmanager
async def service(
    app: Rota, works: bool = True, port: int = 0, token: str | None = None
) -> AsyncGenerator[tuple[str, str]]:
    """Serve `app` as `rota serve` does, in this process, until the block ends; yield its address and a token."""
    token = token or new_token()
    tokens = Tokens(token)
    stop = asyncio.Event()
    listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        place = Place(port=port)
        async for bound in serve(app, place, Credentials(by_token(tokens), token, tokens), (), works, stop):
            listening.set_result(bound)

    served = asyncio.create_task(run())
    served.add_done_callback(lambda _: listening.cancel())  # if it ends before it listens
    try:
        yield f"http://127.0.0.1:{await listening}", token
    finally:
        stop.set()
        await served


class _Quiet(uvicorn.Server):
    """A uvicorn that leaves signals to pytest."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def serving(application: ASGIApp) -> AsyncGenerator[str]:
    """Serve any ASGI application on a free port until the block ends; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = _Quiet(uvicorn.Config(application, log_config=None, lifespan="off", timeout_graceful_shutdown=1))
        served = asyncio.create_task(server.serve([listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await served


_warm: dict[Browser, dict[tuple[tuple[str, Any], ...], list[Page]]] = {}
"""The pages that wait for another test with their options: a new one costs the processor twice as much."""


@asynccontextmanager
async def page_of(
    browser: Browser, url: str, size: tuple[int, int] = SIZE, **options: Any
) -> AsyncGenerator[tuple[Page, Watched]]:
    """A page that knows nothing of tests before this one; at the end it must have done nothing wrong."""
    idle = _warm.setdefault(browser, {}).setdefault((("size", size), *sorted(options.items())), [])
    page = idle.pop() if idle else await _new_page(browser, size, **options)
    context = page.context
    watched = Watched(url)
    watched.attach(context)
    try:
        yield page, watched
        watched.check()
    except BaseException:
        await context.close()
        raise
    page = await _forget(page, size)
    watched.detach(context)
    idle.append(page)


async def _new_page(browser: Browser, size: tuple[int, int], **options: Any) -> Page:
    context = await browser.new_context(
        viewport=_viewport(size),
        timezone_id="Europe/Berlin",
        locale="en-GB",
        reduced_motion="reduce",
        **options,
    )
    context.set_default_timeout(PATIENCE)
    return await context.new_page()


def _viewport(size: tuple[int, int]) -> ViewportSize:
    return {"width": size[0], "height": size[1]}


async def _forget(page: Page, size: tuple[int, int]) -> Page:
    """Take away what a test has left in a page and its context, and close other pages. Return a blank page."""
    context = page.context
    for each in context.pages:
        if each.url.startswith("http"):
            await each.evaluate("localStorage.clear()")
        if each is not page:
            await each.close()
    await context.clear_cookies()
    if page.is_closed():
        return await context.new_page()
    await page.unroute_all()
    await page.goto("about:blank")
    if page.viewport_size != _viewport(size):
        await page.set_viewport_size(_viewport(size))
    return page


async def log_in(page: Page, url: str, token: str) -> None:
    """Give the context of a page a session, as the page itself does with the token in its address."""
    answer = await page.request.post(
        f"{url}/api/v1/session",
        data={"token": token},
        headers={"Origin": re.sub(r"^(\w+://[^/]+).*", r"\1", url)},
    )
    assert answer.status == 204, await answer.text()
