"""An app with something on every page, and with text that attacks: for tests that only look."""

import asyncio
from contextlib import suppress

from rota import Activity, Breaker, Cron, Every, Limit, Period, Retry, Rota, RunFailed
from rota.client.audit import Author, acting

SCRIPT = "<script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
ESCAPE = "\x1b[31mred\x1b]8;;http://evil.example\x07\u202egnp.exe"
LONG = "word " * 2_000
"""10,000 characters."""
NOTE = f"waiting for the new logo {SCRIPT}"
PLACES = {
    "Now": "/",
    "Runs": "/runs",
    "Run": "/runs/{run}",
    "Errors": "/errors",
    "Why?": "/why?subject=newsletter",
    "Tasks": "/tasks",
    "Task": "/tasks/resize",
    "Schedules": "/schedules",
    "Schedule": "/schedules/close_of_day:nightly",
    "Time line": "/timeline",
    "Calendar": "/calendar",
    "Flows": "/flows",
    "Flow": "/flows/orders",
    "Keys": "/keys?key=ada",
    "Decisions": "/decisions",
    "Workers": "/workers",
    "Operations": "/operations",
    "Doctor": "/doctor",
    "Me": "/me",
}
"""Every page, by name, and its address in this world; `{run}` is the run that failed."""


class Boom(Exception):
    pass


def app() -> Rota:
    made = Rota("memory://", name="shop", grace=0.1)

    @made.task(key="{path}")
    async def resize(path: str, note: str = "", password: str = "") -> str:
        """Make a picture smaller."""
        return f"{path} {note}"

    @made.task(retry=Retry(2, delay=3600))
    async def fetch(city: str) -> str:
        """Ask a server."""
        raise Boom(f"no answer from {city} {SCRIPT} {ESCAPE}")

    @made.task
    async def broken(big: int) -> None:
        """Fail for good."""
        raise Boom(f"{big} {SCRIPT} {ESCAPE}\n{LONG}")

    @made.task
    async def newsletter(to: str) -> None:
        """Wait: somebody has paused it."""

    @made.task(limit=Limit(1))
    async def transcode(film: str) -> None:
        """Use the one machine."""
        await asyncio.Event().wait()

    @made.task(queue="gpu")
    async def train(rows: int) -> None:
        """Wait for a worker of the queue gpu."""

    @made.task(activity=Activity(0, key="{user}", spacing=0, breaker=Breaker(1, cool_down=3600)))
    async def charge(user: str) -> None:
        """Charge a card."""
        raise Boom("refused")

    @made.task(schedule=Every(hours=1))
    async def hourly() -> None:
        """Come every hour."""

    @made.task(schedule={"nightly": Cron("30 2 * * *", tz="Europe/Berlin")})
    async def close_of_day() -> None:
        """Close the books at a time that two nights do not have once."""

    _orders(made)
    return made


def _orders(made: Rota) -> None:
    @made.task
    async def collect() -> list[str]:
        return ["a"]

    @made.task
    async def check(collect: list[str]) -> None:
        raise Boom("not in stock")

    @made.task
    async def ship() -> None: ...

    orders = made.flow("orders", once=Period.day())
    orders.step(collect)
    orders.step(check, after=collect)
    orders.step(ship, after=check)


async def fill(made: Rota) -> dict[str, str]:
    """Give the app its history; return the values for `PLACES`. The engine of the app runs."""
    done = await made.submit("resize", SCRIPT, note=ESCAPE + LONG, password="hunter2")
    await done.result()
    failed = await made.submit("broken", 12345678901234567890123)
    with suppress(RunFailed):
        await failed.result()
    await made.submit("fetch", "Oslo")
    with acting(Author(f"grace {SCRIPT}", "cli")):
        await made.pause("newsletter", NOTE)
    await made.submit("newsletter", "ada@example.org")
    for film in ("a", "b"):
        await made.submit("transcode", film)
    await made.submit("train", 1)
    await made.touch("charge", "ada")
    await made.flows["orders"].start()
    await made.schedules.put("weekly", Cron("0 4 * * 1"), made.tasks["resize"].bind("logo.png"))
    return {"run": failed.id, "done": done.id}
