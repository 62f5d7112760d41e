"""`rota worker --burst`: run what is due, then stop."""

from collections.abc import Collection

from rota.app.app import Rota
from rota.app.core import core_of
from rota.cli.worker.signals import Stop
from rota.client.drain import drained

LOOK_AGAIN = 0.2


async def until_drained(app: Rota, tasks: Collection[str], stop: Stop) -> None:
    """Wait until no run of `tasks` is due and none runs here, or until `stop` is asked."""
    client = app.client()
    heard = await client.news(0)
    while not stop.asked.is_set():
        if await drained(client, core_of(app).engine, tasks):
            return
        heard = await client.news(LOOK_AGAIN, heard)
