"""The app: where it keeps its time, what a day is, and whom it tells."""

import logging

from examples.race_day.racing import open_racing
from rota import Event, Period, Rota

log = logging.getLogger("race_day")

app = Rota(name="race_day", tz="Europe/Paris", resources=open_racing)
DAY = Period.day(tz="Europe/Paris", format="%d%m%Y")


async def tell(event: Event) -> None:
    """A real app would page somebody."""
    log.warning("%s: %s, %s", event.name, event.task, event.error or event.note or event.reason)


app.on("failed", tell)
app.on("lost", tell)
app.on("late", tell)
