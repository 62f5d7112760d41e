"""The app as it would run: in real time, on SQLite (or ROTA_URL), with a worker in this process."""

import asyncio
import logging
from contextlib import suppress

from examples.race_day.app import app, log
from examples.race_day.day import day


async def live(seconds: float | None = None) -> None:
    """Start today and work until interrupted, or for so many seconds."""
    async with app:
        answers = await day.start()
        log.info("today: %s", ", ".join(f"{step} {decision.reason}" for step, decision in answers.items()))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.Event().wait()


def run(seconds: float | None = None) -> None:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s  %(message)s", datefmt="%H:%M:%S")
    log.setLevel(logging.INFO)
    with suppress(KeyboardInterrupt):
        asyncio.run(live(seconds))
