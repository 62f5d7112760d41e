"""Holds: a queued run stands in the due index if and only if nothing holds it. One routine lets parked runs go.

The invariant: where a key has parked runs, those that run or stand ready fill its limit. So whoever takes a ready or
running run of a key away lets the next one go.
"""

import math

from msgspec.structs import replace

from rota.domain.run import Standing
from rota.stores.book import Book


def freed(book: Book, run: Standing) -> None:
    """A run of a gated task no longer runs or stands ready: someone else may start."""
    spec = book.spec(run.task)
    if spec is None or not spec.gated:
        return
    if run.key is not None:
        unpark(book, run.task, run.key)
    book.arrivals.append((run.task, book.now))


def unpark(book: Book, task: str, key: str, most: float = math.inf) -> None:
    """Let parked runs of a key into the due index, as many as its limit has room for."""
    spec = book.spec(task)
    per_key = spec.limit.per_key if spec and spec.limit else None
    room = most if per_key is None else per_key - book.running_key(task, key) - book.ready_key(task, key)
    if per_key is None and math.isinf(most):
        room = 0 if spec and spec.rate and spec.rate.per_key else math.inf  # a rate lets go by the clock alone
    while room > 0 and (run := book.next_parked(task, key)) is not None:
        book.save(replace(run, parked=False))
        book.arrivals.append((task, run.due_at))
        room -= 1
