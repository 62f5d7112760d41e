"""The app of the fault tests: its handlers print what they do, so that a test can wait for it."""

import asyncio
import ctypes
import os
import sys
import threading

from rota import Context, Results, Rota
from rota.domain.fan import Fan
from rota.store import RowQuery

app = Rota()

HOLD = os.environ.get("HOLD") == "1"
"""Handlers of this process begin and do not end by themselves."""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@app.task
async def work(i: int) -> int:
    say(f"began {i}")
    if HOLD:
        await asyncio.Event().wait()
    return i


@app.task
def ask(i: int) -> str:
    """Ends when the process is told to, on its standard input."""
    say(f"began {i}")
    return sys.stdin.readline().strip() if HOLD else "done"


@app.task
async def count(ctx: Context) -> list[int]:
    """Counts to five; a process that holds stops at three and waits to be paused."""
    begin = ctx.saved or 0
    for n in range(begin, 5):
        ctx.checkpoint(n)
        if HOLD and n == 3:
            say("at three")
            await asyncio.Event().wait()
    return list(range(begin, 5))


@app.task(executor="process", max_losses=2)
def crash(n: int) -> int:
    """In a child of its own; the unlucky one takes its child down."""
    if n == 500:
        ctypes.string_at(0)
    return n


@app.task
async def spread(n: int) -> list[int]:
    return list(range(n))


@app.task
async def part(i: int) -> int:
    return i


@app.task
async def whole(ctx: Context, results: Results[int]) -> list[int]:
    """The number and the sum of the results, then the counts of the fan: a sweep forgets these when the gather has
    ended."""
    say("gathered")
    fans = await Rota.current().client().rows(Fan, RowQuery(names=[ctx.run.id.removesuffix(".all")]))
    counts = [count for fan in fans.items for count in (fan.total or 0, fan.ended, fan.failed)]
    return [len(results), sum([result async for result in results]), *counts]


@app.task
async def block(seconds: float) -> str:
    """Blocks the event loop, which a handler should never do."""
    say("began")
    threading.Event().wait(seconds)
    return "done"
