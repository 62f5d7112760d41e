"""An app whose calls must keep out of each other's way: schedules that replace, a limit of three tasks, two queues.

Every handler writes a line when it begins and while it works, so that its last line is its last sign of life, also if
its process is killed.
"""

import asyncio
import os
import random
import time

from rota import Context, Every, Limit, Retry, Rota
from tests.chaos import history

QUEUES = ("images", "sounds")
SERVES = os.environ.get("SERVES", "")
"""The queue that only this worker serves."""
BORN = os.environ.get("BORN", "")
"""Tells this worker from the others, also in a child of it."""
BEAT = 0.03
"""Seconds between two signs of life."""
EVERY, LONG = 0.5, 0.8
"""Seconds between two ticks, and those that a call takes."""
SHORT = (0.02, 0.3)
LOSSES = 1_000_000
REPLACED = ("replaced", "replaced_thread", "replaced_process")
LIMITED = ("cut", "fit", "train")
TOTAL = 2


def sign(ctx: Context, event: str = "beat") -> None:
    history.write(event, run=ctx.run.id, fence=ctx.run.fence, task=ctx.run.task, serves=SERVES, born=BORN)


async def work(ctx: Context, seconds: float) -> None:
    for _ in range(round(seconds / BEAT)):
        sign(ctx)
        await asyncio.sleep(BEAT)


async def replaced(ctx: Context) -> None:
    """Takes a while to clean up when it is asked to stop."""
    sign(ctx, "begin")
    try:
        await work(ctx, LONG)
    finally:
        await work(ctx, 0.2)


def replaced_thread(ctx: Context) -> None:
    """Does not look whether it should stop: nothing ends it but the end of its process."""
    sign(ctx, "begin")
    for _ in range(round(LONG / BEAT)):
        sign(ctx)
        time.sleep(BEAT)


def replaced_process(ctx: Context) -> None:
    replaced_thread(ctx)


async def limited(ctx: Context) -> None:
    sign(ctx, "begin")
    await work(ctx, random.uniform(*SHORT))


async def placed(ctx: Context) -> None:
    """Fails once, and then succeeds."""
    await limited(ctx)
    if not ctx.run.failures:
        raise ValueError("once")


def define(app: Rota) -> None:
    ticks = Every(EVERY)
    app.task(schedule=ticks, overlap="replace", max_losses=LOSSES)(replaced)
    app.task(schedule=ticks, overlap="replace", max_losses=LOSSES)(replaced_thread)
    app.task(schedule=ticks, overlap="replace", max_losses=LOSSES, executor="process")(replaced_process)
    for name in LIMITED:
        app.task(name=name, limit=Limit(TOTAL, name="gpu"), max_losses=LOSSES)(limited)
    app.task(retry=Retry(1, delay=0), max_losses=LOSSES)(placed)


app = Rota()
define(app)
