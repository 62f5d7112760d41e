"""The twelve-step day of a racing service. A worker that is told to (`DIES`) ends so many seconds after a word."""

import asyncio
import os
import signal
import sys
import threading
import time

from rota import Flow, Period, Rota

AFTER: dict[str, list[str]] = {
    "clear_log": [],
    "today": ["clear_log"],
    "pastraces": ["today"],
    "yesterday": ["today"],
    "predictions": ["yesterday"],
    "history": ["predictions", "pastraces"],
    "program": ["today", "history"],
    "participants": ["program"],
    "careers": ["participants"],
    "favorability": ["careers"],
    "plan_race": ["careers"],
    "prepare_tomorrow": ["plan_race", "favorability"],
}
WORK = 0.2
"""Seconds that a step takes."""


def die(seconds: float) -> None:
    sys.stdin.readline()
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


if (dies := os.environ.get("DIES")) is not None:
    threading.Thread(target=die, args=(float(dies),), daemon=True).start()


async def work() -> float:
    """When it started."""
    began = time.time()
    await asyncio.sleep(WORK)
    return began


def define(app: Rota) -> Flow:
    day = app.flow("race_day", once=Period.day())
    for name, after in AFTER.items():
        day.step(app.task(name=name, max_losses=1000)(work), after=after)
    return day


app = Rota()
define(app)
