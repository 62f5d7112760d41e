"""The app under chaos. Every handler writes when its call begins and when its call ends, and how."""

import asyncio
import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from rota import Context, Limit, Retry, Rota
from tests.chaos import history

app = Rota()

RETRY = Retry(3, delay=0.1)
LOSSES = 1_000_000
"""A run may be lost as often as chaos wants. Without this, a run that is lost five times is set aside as poison."""
TOTAL, PER_KEY = 3, 1
"""The limits of `limited`."""
SAVES = 3
LONG, SHORT = 0.8, 0.02
"""Seconds that a handler takes: mostly short, now and then long enough to be hit by a fault."""


class Deliberate(Exception):
    """The failure that a handler was told to have."""


def seconds() -> float:
    return random.uniform(0, LONG if random.random() < 0.1 else SHORT)


@contextmanager
def called(ctx: Context, token: str) -> Generator[None]:
    """Write the beginning of this call and, unless the call is cut off, its end."""
    run = ctx.run
    known = {"run": run.id, "fence": run.fence, "task": run.task}
    history.write("begin", **known, token=token, key=run.key, due=run.due_at, failures=run.failures)
    yield
    history.write("end", **known)


@app.task(max_losses=LOSSES)
async def plain(ctx: Context, token: str) -> str:
    with called(ctx, token):
        await asyncio.sleep(seconds())
    return token


@app.task(max_losses=LOSSES)
def threaded(ctx: Context, token: str) -> str:
    with called(ctx, token):
        time.sleep(seconds())
    return token


@app.task(max_losses=LOSSES, executor="process")
def isolated(ctx: Context, token: str) -> str:
    with called(ctx, token):
        time.sleep(seconds())
    return token


@app.task(max_losses=LOSSES, retry=RETRY)
async def flaky(ctx: Context, token: str, fails: int) -> str:
    """Fails so many times, then succeeds; more often than its retries, it fails for good."""
    with called(ctx, token):
        await asyncio.sleep(seconds())
        if ctx.run.failures < fails:
            raise Deliberate(token)
    return token


@app.task(lost="fail")
async def single(ctx: Context, token: str) -> str:
    with called(ctx, token):
        await asyncio.sleep(seconds())
    return token


@app.task(max_losses=LOSSES, key="{key}", limit=Limit(TOTAL, per_key=PER_KEY))
async def limited(ctx: Context, token: str, key: str) -> str:
    with called(ctx, token):
        await asyncio.sleep(seconds())
    return key


@app.task(max_losses=LOSSES, key="{key}", unique="active")
async def lonely(ctx: Context, token: str, key: str) -> str:
    with called(ctx, token):
        await asyncio.sleep(seconds())
    return key


@app.task(max_losses=LOSSES, key="{key}", unique="queued", join="push")
async def pushed(ctx: Context, token: str, key: str) -> str:
    with called(ctx, token):
        await asyncio.sleep(seconds())
    return key


@app.task(max_losses=LOSSES, key="{key}", unique="queued", retry=RETRY)
def saver(ctx: Context, token: str, key: str) -> str:
    """Goes on from its checkpoint, which must be one of the same work."""
    with called(ctx, token):
        saved: Any = ctx.saved
        if saved is not None and saved["token"] != token:
            history.write("foreign checkpoint", run=ctx.run.id, token=token, saved=saved["token"])
        for n in range(saved["n"] if saved else 0, SAVES):
            ctx.checkpoint({"token": token, "n": n + 1})
            time.sleep(seconds())
            if random.random() < 0.1 and ctx.run.failures < (RETRY.limit or 0):
                raise Deliberate(token)
    return key


@app.task(max_losses=LOSSES)
async def first(ctx: Context, token: str) -> str:
    with called(ctx, token):
        await asyncio.sleep(seconds())
    return token


@app.task(max_losses=LOSSES)
async def second(ctx: Context, first: str) -> str:
    with called(ctx, first):
        await asyncio.sleep(seconds())
    return first


@app.task(max_losses=LOSSES)
async def third(ctx: Context, second: str) -> str:
    with called(ctx, second):
        await asyncio.sleep(seconds())
    return second


@app.task(max_losses=LOSSES, retry=RETRY)
async def paced(ctx: Context) -> None:
    """Slower than its schedule, and fails now and then."""
    with called(ctx, f"paced@{ctx.run.origin.nominal}"):
        await asyncio.sleep(random.uniform(0.2, 2.0))
        if random.random() < 0.2:
            raise Deliberate(ctx.run.id)


@app.task(max_losses=LOSSES)
async def tick(ctx: Context, schedule: str) -> None:
    with called(ctx, f"{schedule}@{ctx.run.origin.nominal}"):
        await asyncio.sleep(seconds())
