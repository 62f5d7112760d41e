"""Unique keys beyond the runs of one task: windows of time, and keys that several tasks share.

Both have a row, which is a mark under a name that no task has (`NewRun.unique_row`). It remembers which run of the key
was accepted last (`holder`), when (`succeeded_at`), and from when its window counts (`finished_at`). Of the tasks that
share a key, only the task of that run can have an unfinished run or a success that counts: an earlier one would have
kept that run out.
"""

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.decision import Decision, Reason
from rota.domain.guards import Mark
from rota.domain.run import NewRun, State
from rota.stores.book import Book

ARRIVED = frozenset({Reason.JOINED, Reason.ALREADY_QUEUED, Reason.ALREADY_RUNNING, Reason.ALREADY_DONE})
"""The decisions about a submit that moves a sliding window."""


def held_by_other(book: Book, new: NewRun) -> Decision | None:
    """Return the refusal because of an unfinished run of another task that shares the key."""
    if new.unique_row is None:
        return None
    task, _, id = (_unique_row(book, new).holder or "").partition(" ")
    run = book.get(id) if id and task != new.task else None
    if run is None or run.state.final or rules.too_late(run, book.now):
        return None
    return Decision(run.id, Reason.ALREADY_RUNNING if run.state is State.RUNNING else Reason.ALREADY_QUEUED)


def done_by(book: Book, new: NewRun, mark: Mark) -> str | None:
    """Return the run whose success keeps `new` out, or the id of `new` if nobody knows that run; None if no success
    does. `mark` is that of the task of `new`."""
    if new.unique_row is None:
        return None if mark.succeeded_at is None else new.id
    row = _unique_row(book, new)
    task, _, id = (row.holder or "").partition(" ")
    marks = [mark] if task in ("", new.task) else [mark, book.mark(task, new.unique_key or "")]
    accepted = 0.0 if row.succeeded_at is None else row.succeeded_at
    done = [each.succeeded_at for each in marks if each.succeeded_at is not None and each.succeeded_at >= accepted]
    if not done:
        return None
    since = max(done) if row.finished_at is None else row.finished_at
    within = new.guards.within
    return (id or new.id) if within is None or book.now < since + within else None


def note_unique(book: Book, new: NewRun) -> None:
    """`new` is accepted: it has its key now, and opens its window."""
    if (name := new.unique_row) is not None:
        book.put_mark(name, new.unique_key or "", Mark(book.now, book.now, 0, f"{new.task} {new.id}"))


def slide(book: Book, new: NewRun, reason: Reason) -> None:
    """A submit of the key came and made no run: a sliding window counts from now."""
    if new.guards.sliding and reason in ARRIVED and (name := new.unique_row) is not None:
        row = _unique_row(book, new)
        if row.finished_at is not None:
            book.put_mark(name, new.unique_key or "", replace(row, finished_at=book.now))


def _unique_row(book: Book, new: NewRun) -> Mark:
    return book.mark(new.unique_row or "", new.unique_key or "")
