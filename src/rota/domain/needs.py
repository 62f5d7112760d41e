"""Needs: what a run waits for. A run's id stands for its end; a name for something that is done, whoever does it.

A name is a (task, key): `done` is met by a success, `ended` by any end. Their spelling is all that a store reads: run
ids hold no space, task names neither, so that the first one ends the task.
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
    """What a need names; None for a run's id."""
    task, space, key = need.partition(" ")
    return Named(task[1:], key, task[0] == ENDED) if space else None
