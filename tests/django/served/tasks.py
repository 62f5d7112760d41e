"""A schedule that shows who fires, and a task that a stop has to interrupt."""

import threading

from rota import Every
from rota.django import app


@app.task(name="tick", schedule=Every(1), catch_up="all", overlap="allow")  # a stall of the machine leaves no tick out
def tick() -> None:
    return None


@app.task(name="linger")
def linger() -> None:
    threading.Event().wait(300)
