"""settle and renew: what becomes of runs that were claimed; and which ended runs a sweep may forget."""

from rota.domain.run import Lease, Note, after
from rota.domain.settlement import Charge, Finish, Requeue, Settlement
from rota.store import ID_MEMORY, Retention
from storekit.model import holding
from storekit.model.book import ATTEMPTS_SHOWN, Book, Ending, Mark, Row


def renew(book: Book, lease: Lease, until: float, note: Note | None) -> str:
    row = book.held(lease.run, lease.fence, lease.worker)
    if row is None:
        return "lost"
    row.until = until
    keep_note(row, note)
    return row.command or "ok"


def keep_note(row: Row, note: Note | None) -> None:
    if note is not None:
        row.progress = note.progress or row.progress
        row.saved = row.saved if note.saved is None else note.saved


def settle(book: Book, said: Settlement) -> str:
    row = book.held(said.run, said.fence, said.worker)
    if row is None:
        return "already" if is_known(book.rows.get(said.run), said) else "stale"
    if said.lost and (row.until or 0.0) > book.now:
        return "stale"
    row.endings.append(Ending(said.fence, said.worker, said.outcome, said.lost))
    row.holder = row.until = None
    row.failures += said.charge is Charge.FAILURE
    row.losses += said.charge is Charge.LOSS
    row.error = None if said.error is None else said.error.message
    keep_note(row, said.note)
    if isinstance(said.action, Finish):
        holding.end(book, row, said.action.state, said.action.reason)
        row.result = said.action.result
    elif row.command == "cancel":
        holding.end(book, row, "cancelled", "cancelled")
    else:
        requeue(book, row, said.action, said.called)
    if row.final:
        finish(book, row, said)
    return "applied"


def is_known(row: Row | None, said: Settlement) -> bool:
    """Was this very ending recorded? A zombie and its rescuer share the fence and the worker."""
    recent = row.endings[-ATTEMPTS_SHOWN:] if row else []
    return (said.fence, said.worker, said.lost) in [(one.fence, one.worker, one.lost) for one in recent]


def requeue(book: Book, row: Row, action: Requeue, called: bool) -> None:
    row.due = after(book.now, action.delay) if action.delay else row.due
    row.expires = None if called else row.expires
    others = holding.equals(book, row.new.task, row.new.unique_key)
    heir = next((other for other in others if other.waiting and row.id not in other.needs), None)
    row.state, row.command = "paused" if row.command == "pause" else "queued", None
    if heir is not None:
        if heir.body == row.body:
            heir.due, heir.failures = min(heir.due, row.due), max(heir.failures, row.failures)
        holding.end(book, row, "cancelled", "superseded")
        book.settlement_of(row, "superseded", run=heir.id)


def finish(book: Book, row: Row, said: Settlement) -> None:
    """Its mark first: the runs behind it are judged by that."""
    if row.marks and said.mark:
        write_mark(book, row)
    holding.release(book, row)
    if said.stops is not None:
        holding.cancel_all(book, book.in_group(said.stops), "stopped", f"{row.new.task} {row.state}")


def write_mark(book: Book, row: Row) -> None:
    if row.state == "succeeded":
        book.marks[row.about] = Mark(book.now, book.now, 0)
    elif row.state == "failed":
        known = book.mark(row.about)
        book.marks[row.about] = Mark(known.succeeded, book.now, known.failures + 1)


def may_forget(book: Book, row: Row, retention: Retention) -> tuple[bool, bool]:
    """May a sweep forget this run, and must it? They differ where several ended at one instant."""
    if row.finished is None or row.finished > book.now - ID_MEMORY:
        return False, False
    age = retention.succeeded if row.state == "succeeded" else retention.failed
    ended = [
        other.finished
        for other in book.rows.values()
        if other is not row and other.finished is not None and other.new.task == row.new.task
    ]
    newer = sum(finished > row.finished for finished in ended)
    as_new = sum(finished >= row.finished for finished in ended)
    old = row.finished <= book.now - age
    may = as_new >= retention.most or (old and as_new >= retention.least)
    must = newer >= retention.most or (old and newer >= retention.least)
    return may, must
