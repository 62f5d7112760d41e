"""Holds: a queued run stands in the due index if and only if nothing holds it: it is not paused, not parked and waits
for no other run's end. One routine lets parked runs go, one those that wait.

A due run is parked while its key is saturated. The invariant: of a key's due runs the best stand in the index, as many
as may start. So whoever takes a running or a ready one away, or moves it to later, lets the best parked one go. One
too many does no harm, the next claim parks it again; one too few would wait for ever.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.guards import rested
from rota.domain.run import Standing, State, after
from rota.stores.book import Book


def holders(book: Book, task: str, unique_key: str) -> list[Standing]:
    """Who stands in the way of an equal run; not one that is too late to start: whoever joined it would be lost."""
    found = book.holders(task, unique_key)
    late = [run for run in found if rules.too_late(run, book.now)]
    expire(book, late)
    return [run for run in found if run not in late]


def expire(book: Book, late: Sequence[Standing]) -> None:
    for run in late:
        book.save(rules.expire(run, book.now))
        book.touched.add(run.id)
        book.decided(run.task, run.key, Reason.EXPIRED, run=run.id)
        release(book, run)
    for run in late:  # not before all of them are gone: else one makes room for the next
        freed(book, run)


def freed(book: Book, run: Standing) -> None:
    """A run of a gated task, as it was until now, no longer runs or stands ready: another may start."""
    spec = book.spec(run.task)
    if spec is None or not spec.gated or not (run.state is State.RUNNING or _ready(book, run)):
        return
    limited = spec.limit is not None and spec.limit.per_key is not None
    if run.key is not None and (limited or run.state is not State.RUNNING):  # an end gives a rate no token back
        unpark(book, run.task, run.key, 1)
    book.arrivals.append((run.task, book.now))


def await_ends(book: Book, needs: Sequence[str]) -> tuple[str, ...]:
    """Which of these runs are still to end; each is told that somebody waits for it."""
    book.load(needs)
    left: list[str] = []
    for id in needs:
        run = book.get(id)
        if run is not None and not run.state.final:
            left.append(id)
            if not run.awaited:
                book.save(replace(run, awaited=True))
    return tuple(left)


def release(book: Book, ended: Standing) -> None:
    """A run has ended: those that waited for nothing else may start."""
    if not ended.awaited:
        return
    for run in book.waiters(ended.id):
        if run.state.final:
            continue
        needs = tuple(id for id in run.needs if id != ended.id)
        due_at = run.due_at
        if run.rest and not needs:
            due_at = after(rested(run.rest, book.mark(run.task, run.mark_key), due_at), 0)
        book.save(replace(run, needs=needs, due_at=due_at))
        if not needs and run.state is State.QUEUED:
            book.arrivals.append((run.task, due_at))


def _ready(book: Book, run: Standing) -> bool:
    return run.state is State.QUEUED and not run.parked and not run.needs and run.due_at <= book.now


def unpark(book: Book, task: str, key: str, most: int) -> None:
    """Let the best parked runs of a key into the due index."""
    for _ in range(most):
        run = book.best_parked(task, key)
        if run is None:
            break
        book.save(replace(run, parked=False))
        book.arrivals.append((task, run.due_at))
