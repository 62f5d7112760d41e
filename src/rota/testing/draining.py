"""drain: run all due runs in this process, for tests."""

import asyncio

from rota.app.app import Rota
from rota.app.core import core_of
from rota.client.drain import drained, first_due, first_leased
from rota.errors import DrainTimeout
from rota.store import Reads

LOOK_AGAIN = 0.2
"""Seconds after which `drain` looks at the store again, when no hint came."""


async def drain(app: Rota, *, timeout: float = 10.0) -> None:
    """Run all runs that are due in the app's store now, and the runs that these submit, with a real engine.

    A run that is due later stays queued: a retry with a delay, for example, until a test moves the clock. Raises
    DrainTimeout if a run is still due or running after `timeout` seconds. A handler that fails does not raise here: its
    run holds the error.
    """
    tasks = core_of(app).registry.names()
    engine = core_of(app).build_engine()
    client = app.client()
    async with client:
        heard = await client.news(0)
        await core_of(app).declare_schedules()
        await engine.start()
        try:
            async with asyncio.timeout(timeout):
                while not await drained(client, engine, tasks, everywhere=True):
                    heard = await client.news(LOOK_AGAIN, heard)
        except TimeoutError:
            raise DrainTimeout(await _unrest(client, list(tasks), timeout)) from None
        finally:
            await engine.stop(0)


async def _unrest(store: Reads, tasks: list[str], timeout: float) -> str:
    if leased := await first_leased(store, tasks):
        what = f"{leased.task} {leased.id} still runs in {leased.worker}: does its handler wait for something?"
    elif due := await first_due(store, tasks):
        what = f"{due.task} {due.id} is still due: does a limit or rate hold it back, or does it submit itself again?"
    else:
        what = "something was due or running all the time: does a task submit itself again and again?"
    return f"not at rest after {timeout:g} s: {what}"
