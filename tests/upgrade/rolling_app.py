"""An app that the code of two commits runs on one store: it uses nothing that only one of them has."""

import os
from pathlib import Path

from rota import Context, Every, Limit, Rota

app = Rota()
CALLS = Path(os.environ.get("ROLLING_CALLS", os.devnull))
"""Where every call leaves a line: run and fence."""


@app.task
async def work(ctx: Context, number: int) -> int:
    note(ctx)
    return number


@app.task(limit=Limit(1))
async def alone(ctx: Context, number: int) -> int:
    note(ctx)
    return number


@app.task(key="{number}", unique="done")
async def once(ctx: Context, number: int) -> int:
    note(ctx)
    return number


@app.task(schedule=Every(1), catch_up="all", overlap="allow")
async def second(ctx: Context) -> None:
    note(ctx)
    print("ticked\n", end="", flush=True)  # by one write: the log goes to the same pipe


def note(ctx: Context) -> None:
    with CALLS.open("a") as calls:  # one short line in one write: lines of several processes do not mix
        calls.write(f"{ctx.run.id} {ctx.run.fence}\n")
