"""The demo with the control room: a shop with three workers, its service, and the address to open."""

import asyncio
import logging
import random
import socket
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import rota
from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.demo.shop import Shop, shop
from rota.cli.demo.stage import stage, wrong_clock
from rota.cli.render.logs import route
from rota.cli.render.show import Show
from rota.cli.worker.children import either
from rota.cli.worker.event_loop import Stop, stop_signals
from rota.errors import InvalidOptions, MissingExtra, StoreUnavailable

PAGES = Path(rota.__file__).parent / "web" / "pages" / "index.html"
PORT = 8100
WORKERS = 3
ENOUGH = 100
"""The number of waiting runs at which the demo stops submitting."""

log = logging.getLogger("rota")


class ServedDemo:
    """One demo: three workers, the service and the customers, on one event loop."""

    def __init__(self, url: str, port: int | None, rate: float, show: Show) -> None:
        self.shops: list[Shop] = [shop(url) for _ in range(WORKERS)]
        self._port = port
        self._rate = rate
        self._show = show

    @property
    def app(self) -> Rota:
        return self.shops[0].app

    async def run(self, seconds: float | None) -> None:
        """Run until a signal comes or the time is up; then let running handlers end."""
        try:
            from rota.web.server import Place, credentials, serve
            from rota.web.tokens import Tokens
        except ImportError as error:
            raise MissingExtra(
                f'the control room needs {error.name}: pip install "rota[web]", or `rota demo --terminal`'
            ) from None
        route(_only_the_service(), logging.ERROR)
        place = Place(port=self._free_port())
        letting_in = credentials(place, Tokens(), no_token=False)
        with stop_signals() as stop:
            async with AsyncExitStack() as working:
                await working.enter_async_context(wrong_clock(self.shops[-1].app))
                for each in self.shops[1:-1]:
                    await working.enter_async_context(each.app)
                async for bound in serve(self.app, place, letting_in, (), True, stop.asked):
                    stop.hurry = self._hurry
                    self._announce(Place(port=bound).url, letting_in.shown or "")
                    await self._play(stop, seconds)
                    self._show.note("ending: running handlers may end; Ctrl-C again leaves them")
        self._show.line(f"rota demo ended; look closer: rota runs ls --url {self.app.backend.url}")

    async def _play(self, stop: Stop, seconds: float | None) -> None:
        """Stage the troubles and be the customers, until the end is asked for."""
        customers = asyncio.create_task(self._keep_submitting(), name="demo submits")
        customers.add_done_callback(lambda _: stop.asked.set())  # a demo that has failed ends, too
        await either(stop.asked, seconds)
        stop.asked.set()
        customers.cancel()
        with suppress(asyncio.CancelledError):
            await customers

    async def _keep_submitting(self) -> None:
        await stage(self.shops[0])
        while True:
            try:
                waiting = sum(depth.queued for depth in (await self.app.depths()).values())
                if waiting < ENOUGH:
                    await self.shops[0].submit()
            except StoreUnavailable as error:
                log.warning("the demo cannot submit: %s", error)
            await asyncio.sleep(min(random.expovariate(self._rate), 5 / self._rate))

    def _hurry(self) -> None:
        for each in self.shops:
            if core_of(each.app).lifecycle.running is not None:
                core_of(each.app).engine.hurry()

    def _free_port(self) -> int:
        """Return the port to listen on: the usual one unless another process has it. A port of the user's is taken."""
        if self._port is not None:
            return self._port
        try:
            socket.create_server(("127.0.0.1", PORT)).close()
        except OSError:
            self._show.note(f"port {PORT} is busy: taking a free one (or name one with --port)")
            return 0
        return PORT

    def _announce(self, url: str, token: str) -> None:
        self._show.line(f"rota demo on {self.app.backend.url}")
        if not PAGES.exists():
            self._show.line(f"The pages of the control room are not built: `make ui` builds them. API: {url}/api/v1")
        self._show.line(f"control room: {url}/#token={token}")
        self._show.line("Open the address in a browser of this machine. Ctrl-C ends the demo.")


def _only_the_service() -> logging.Handler:
    """Runs that fail are what the control room shows. Only the service may speak here, if it fails."""
    handler = logging.StreamHandler()
    handler.addFilter(logging.Filter("rota.web"))
    return handler


def check_port(port: int | None) -> None:
    if port is not None and not 0 <= port <= 65535:
        raise InvalidOptions(f"--port {port}: from 0 to 65535")
