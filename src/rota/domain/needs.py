"""Needs: what a run waits for. A need is the id of a run, whose end meets it, or a name, which any run can meet.

A name is a (task, key): `done` is met by a success, `ended` by any end. Stores read only this spelling: run ids and
task names have no space, so the first space ends the task.
"""

from msgspec import Struct

DONE, ENDED = "+", "*"


class Named(Struct, frozen=True):
    task: str
    key: str
    any_end: bool


def done(task: str, key: str) -> str:
    return f"{DONE}{task} {key}"


def ended(task: str, key: str) -> str:
    return f"{ENDED}{task} {key}"


def named(need: str) -> Named | None:
    """Return the task and key of a name; None for the id of a run."""
    task, space, key = need.partition(" ")
    return Named(task[1:], key, task[0] == ENDED) if space else None
