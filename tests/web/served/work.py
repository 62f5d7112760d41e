"""The tasks of the served sites: a schedule, and a call that does not end."""

import asyncio
import os

from rota import Context, Rota

app = Rota(f"sqlite:///{os.environ['SERVED_DIR']}/.rota/rota.db")


@app.task(schedule="every 1s", lost="retry", catch_up="all", overlap="allow")  # a stall leaves no tick out
async def tick() -> None: ...


@app.task
async def linger(ctx: Context) -> None:
    await asyncio.Event().wait()
