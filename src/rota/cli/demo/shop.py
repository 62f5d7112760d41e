"""The app of the demo with the control room: a small shop. Most of its tasks do well; each of the others has one of the
troubles that real apps have."""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from rota.app.app import Rota
from rota.domain.activity import Activity, Breaker
from rota.domain.period import Period
from rota.domain.policy import Limit, Rate, Retry
from rota.domain.triggers import Cron, Every
from rota.engine.context import Context

NAMES = ("ada", "alan", "barbara", "edsger", "katherine", "linus", "margaret")
CITIES = ("Lisbon", "Nairobi", "Osaka", "Oslo", "Paris", "Quito", "Toronto")
FILES = ("apples.png", "bread.png", "cheese.png", "dates.png", "eggs.png")
SEATS = 6
QUEUES = ("default",)
"""Nobody serves the queues gpu and imports."""

journal = logging.getLogger("shop")


class ServerBusy(Exception):
    """Goes away when it is tried again."""


class CardRefused(Exception):
    """Does not go away."""


async def send_mail(to: str, subject: str) -> str:
    """Send a mail to a customer; done in a moment."""
    await asyncio.sleep(random.uniform(0.02, 0.3))
    return f"{subject}: sent to {to}"


def resize(ctx: Context, path: str, width: int = 800) -> dict[str, Any]:
    """Make a picture smaller, row by row, in a thread."""
    rows = random.randint(6, 16)
    for row in range(rows):
        if ctx.stopping:
            break
        ctx.progress(row / rows, f"row {row + 1} of {rows}")
        time.sleep(random.uniform(0.2, 0.4))
    return {"path": path, "width": width, "rows": rows}


async def fetch_weather(city: str) -> str:
    """Ask a server that is busy every other time, and is asked again."""
    await asyncio.sleep(random.uniform(0.1, 0.6))
    if random.random() < 0.5:
        journal.warning("%s: 503, the server is busy", city)
        raise ServerBusy(f"no answer from {city}")
    return f"{random.randint(-5, 35)} °C in {city}"


async def remind(note: str) -> str:
    """Remind somebody of something, some seconds later."""
    await asyncio.sleep(random.uniform(0.05, 0.5))
    return note


async def charge_card(user: str, password: str = "") -> str:
    """Charge a card. The bank refuses the card of mallory: the breaker of this key opens."""
    await asyncio.sleep(0.05)
    if user == "mallory":
        raise CardRefused("the bank says no")
    return f"charged {user}"


async def count_stock(ctx: Context) -> str:
    """Count the stock every five seconds."""
    await asyncio.sleep(random.uniform(0.1, 0.4))
    return "by hand" if ctx.nominal is None else f"the tick of {ctx.nominal:%H:%M:%S}"


async def close_of_day() -> str:
    """Close the books at night, at a time that two nights of the year do not have once."""
    return "closed"


async def sync_customers() -> None:
    """Ask a server that is gone: every run of this schedule fails."""
    raise ConnectionError("crm.example.org: connection refused")


async def read_prices(ctx: Context) -> str:
    """Take 25 seconds, and be due every 10: the ticks between are skipped."""
    for part in range(25):
        ctx.progress(part / 25, "reading")
        await asyncio.sleep(1)
    return "1,204 prices"


async def transcode(film: str) -> str:
    """Use the one machine that can do it; the others wait."""
    await asyncio.sleep(20)
    return film


async def newsletter(to: str) -> str:
    """Wait, because somebody has paused the task."""
    return f"sent to {to}"


async def train_model(rows: int) -> int:
    """Wait in the queue gpu, which no worker serves."""
    return rows


async def import_order(number: int) -> int:
    """Die with the worker that imports it: the run is poison."""
    return number


async def index_page(page: str, language: str) -> str:
    """Fail for runs from before `language` was a parameter."""
    return f"{page} in {language}"


def export_report(seconds: int = 40) -> None:
    """Ask a thread to stop that does not: it outlives its timeout and keeps its seat."""
    time.sleep(seconds)


async def collect(ctx: Context) -> list[str]:
    """Collect the orders of the day."""
    await asyncio.sleep(0.3)
    return ["A-1", "A-2"]


async def check_stock(collect: list[str]) -> None:
    """Fail, so that the step behind it waits."""
    raise LookupError(f"{collect[0]} is not in stock")


async def weigh(collect: list[str]) -> int:
    """Weigh the orders."""
    return len(collect) * 3


async def ship(weigh: int) -> str:
    """Ship the orders, after all steps before."""
    return f"{weigh} kg"


class Shop(Struct, frozen=True):
    app: Rota
    submit: Callable[[], Awaitable[object]]
    """Submit one of its tasks at random."""


def shop(url: str, grace: float = 3.0) -> Shop:
    """One worker of the shop. Three of them share the store."""
    app = Rota(url, concurrency=SEATS, queues=QUEUES, lease=5.0, grace=grace, name="shop", environment="demo")
    mail = app.task(rate=Rate(20, per=1))(send_mail)
    small = app.task(key="{path}")(resize)
    weather = app.task(retry=Retry(3, delay=1.0, max_delay=5.0), logs=True)(fetch_weather)
    later = app.task(remind)
    charge = app.task(activity=Activity(0.5, key="{user}", spacing=0.0, breaker=Breaker(1, cool_down=3600)))(
        charge_card
    )
    app.task(schedule=Every(seconds=5))(count_stock)
    app.task(schedule=Cron("30 2 * * *", tz="Europe/Berlin"))(close_of_day)
    app.task(schedule=Every(seconds=20))(sync_customers)
    app.task(schedule=Every(seconds=10), overlap="skip")(read_prices)
    film = app.task(limit=Limit(1))(transcode)
    app.task(newsletter)
    app.task(queue="gpu")(train_model)
    app.task(queue="imports", max_losses=1)(import_order)
    app.task(index_page)
    app.task(timeout=3, schedule=Every(seconds=60), overlap="allow")(export_report)
    _orders(app)

    async def submit() -> object:
        roll = random.random()
        if roll < 0.45:
            return await mail.submit(f"{random.choice(NAMES)}@example.org", "Your order")
        if roll < 0.6:
            return await small.submit(random.choice(FILES), width=random.choice((400, 800)))
        if roll < 0.8:
            return await weather.submit(random.choice(CITIES))
        if roll < 0.9:
            return await charge.touch(random.choice((*NAMES, "mallory")), password="hunter2")
        if (await app.depths())["transcode"].queued < 3:
            return await film.submit(random.choice(("hats.mov", "tides.mov")))
        wait = random.randint(3, 9)
        return await later.using(delay=wait).submit(f"asked for {wait} s ago")

    return Shop(app, submit)


def _orders(app: Rota) -> None:
    """A flow: the second step fails, and the last waits for it and is late."""
    orders = app.flow("orders", once=Period.day(), recheck=Cron("0 0 * * *"))
    orders.step(app.task(collect))
    orders.step(app.task(check_stock), after="collect")
    orders.step(app.task(weigh), after="collect")
    orders.step(app.task(ship), after=["check_stock", "weigh"], expect=Every(minutes=1))
