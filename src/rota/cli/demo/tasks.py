"""The demo's tasks: a quick one, a slow one, one that sometimes fails, one with a delay, and one with a schedule."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from rota.app.app import Rota
from rota.client.handle import RunHandle
from rota.domain.policy import Retry
from rota.domain.triggers import Every
from rota.engine.context import Context

NAMES = ("Ada", "Alan", "Barbara", "Edsger", "Grace", "Katherine", "Linus", "Margaret")
CITIES = ("Lisbon", "Nairobi", "Osaka", "Oslo", "Paris", "Quito", "Toronto")


class ServerBusy(Exception):
    """The error that the flaky task raises."""


async def quick(name: str) -> str:
    """Says hello; done in a moment."""
    await asyncio.sleep(random.uniform(0.02, 0.3))
    return f"hello {name}"


def slow(ctx: Context, pages: int) -> int:
    """Works through pages for some seconds, in a thread."""
    for page in range(pages):
        if ctx.stopping:
            break
        ctx.progress(page / pages, f"page {page + 1} of {pages}")
        time.sleep(random.uniform(0.2, 0.4))
    return pages


async def flaky(city: str) -> str:
    """Asks a server that is busy every other time, and is retried."""
    await asyncio.sleep(random.uniform(0.1, 0.6))
    if random.random() < 0.5:
        raise ServerBusy(f"no answer from {city}")
    return f"{random.randint(-5, 35)} °C in {city}"


async def delayed(note: str) -> str:
    """Was submitted for later."""
    await asyncio.sleep(random.uniform(0.05, 0.5))
    return note


async def regular(ctx: Context) -> str:
    """Comes every five seconds, by its schedule."""
    await asyncio.sleep(random.uniform(0.1, 0.4))
    nominal = ctx.nominal
    return "by hand" if nominal is None else f"the tick of {nominal:%H:%M:%S}"


def demo_app(url: str) -> tuple[Rota, Callable[[], Awaitable[RunHandle[object]]]]:
    """The demo's app, and a function that submits one of its tasks at random."""
    app = Rota(url, concurrency=6, lease=5.0, grace=10.0)
    greet = app.task(quick)
    read = app.task(slow)
    ask = app.task(retry=Retry(3, delay=1.0, max_delay=5.0))(flaky)
    remind = app.task(delayed)
    app.task(schedule=Every(seconds=5))(regular)

    async def submit() -> RunHandle[object]:
        roll = random.random()
        if roll < 0.5:
            return await greet.submit(random.choice(NAMES))
        if roll < 0.65:
            return await read.submit(pages=random.randint(6, 16))
        if roll < 0.85:
            return await ask.submit(random.choice(CITIES))
        wait = random.randint(3, 9)
        return await remind.using(delay=wait).submit(f"asked for {wait} s ago")

    return app, submit
