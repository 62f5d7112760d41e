"""What the demo with the control room stages when it starts: troubles that workers alone do not make."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.demo.shop import Shop
from rota.client.audit import Author, acting
from rota.domain.decision import Reason
from rota.engine.world import World
from rota.pull.worker import PullWorker

NOTE = "The new logo is not ready. Please ask me before you resume."

AHEAD = 95.0
"""Seconds by which the clock of one worker is ahead."""
PATIENCE = 30.0
"""Seconds within which the first charge should be refused."""


@asynccontextmanager
async def wrong_clock(app: Rota) -> AsyncGenerator[None]:
    """Be a worker of the app on a host whose clock is ahead."""
    engine = core_of(app).build_engine(world=World(wall=lambda: time.time() + AHEAD))
    await engine.start()
    try:
        yield
    finally:
        await engine.stop(core_of(app).tuning.grace)


async def stage(shop: Shop) -> None:
    """Stage what takes a moment; the rest comes by itself, as the shop works. Doing it twice does no harm."""
    app = shop.app
    await _paused(app)
    await app.flows["orders"].start()
    for film in ("hats.mov", "tides.mov", "clouds.mov"):
        await app.submit("transcode", film)
    await app.submit("train_model", 1_000_000)
    await _unknown_to_workers(app.backend.url)
    await _from_before_the_deploy(app.backend.url)
    await _poison(app)
    await _breaker(app)


async def _paused(app: Rota) -> None:
    with acting(Author("grace", "cli", NOTE)):
        await app.pause("newsletter", NOTE)
    for name in ("ada", "alan"):
        await app.submit("newsletter", f"{name}@example.org")


async def _breaker(app: Rota) -> None:
    """Two charges of a card after the bank has refused it. One that came before the refusal would wait behind it, and
    let the others join it."""
    first = await app.touch("charge_card", "mallory", password="hunter2")
    if first.reason is not Reason.BREAKER:
        with suppress(TimeoutError):
            await app.client().ended(first.run, PATIENCE)
    for _ in range(2):
        await app.touch("charge_card", "mallory", password="hunter2")


async def _unknown_to_workers(url: str) -> None:
    """Another app declared its task and went away: no worker can call it."""
    billing = Rota(url, name="billing")

    @billing.task
    async def send_invoice(order: str) -> None:
        """Send an invoice; the app of this task does not run here."""

    async with billing:
        pass
    await send_invoice.submit("A-1")
    await billing.client().close()


async def _from_before_the_deploy(url: str) -> None:
    """A run whose arguments the function of today does not take."""
    older = Rota(url, name="shop")

    @older.task
    async def index_page(page: str) -> None: ...

    await index_page.submit("/hats")
    await older.client().close()


async def _poison(app: Rota) -> None:
    """A run whose worker goes away while it runs."""
    await app.submit("import_order", 4711)
    async with PullWorker(app.backend.url, ["import_order"], queues=["imports"], lease=1.0) as doomed:
        await doomed.claim(wait=0)
