"""The twelve-step day of a racing service. A worker that is told to (`DIES`) kills itself soon after it began."""

import asyncio
import os
import signal
import threading

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

if (dies := os.environ.get("DIES")) is not None:
    threading.Timer(float(dies), os.kill, (os.getpid(), signal.SIGKILL)).start()


async def work() -> int:
    await asyncio.sleep(WORK)
    return os.getpid()


def define(app: Rota) -> Flow:
    day = app.flow("race_day", once=Period.day())
    for name, after in AFTER.items():
        day.step(app.task(name=name, max_losses=1000)(work), after=after)
    return day


app = Rota()
define(app)
