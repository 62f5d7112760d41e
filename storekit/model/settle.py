"""settle and renew: what becomes of claimed runs; and which ended runs a sweep may forget."""

from rota.domain.run import Lease, Note, after
from rota.domain.settlement import Charge, Finish, Requeue, Settlement
from rota.store import ID_MEMORY, Retention
from storekit.model import holds
from storekit.model.book import ATTEMPTS_SHOWN, Book, Ending, Mark, Row


def renew(book: Book, lease: Lease, until: float, note: Note | None) -> str:
    row = book.leased(lease.run, lease.fence, lease.worker)
    if row is None:
        return "lost"
    row.until = until
    keep_note(row, note)
    return row.command or "ok"


def keep_note(row: Row, note: Note | None) -> None:
    if note is not None:
        row.progress = note.progress or row.progress
        row.saved = row.saved if note.saved is None else note.saved


def settle(book: Book, settlement: Settlement) -> str:
    row = book.leased(settlement.run, settlement.fence, settlement.worker)
    if row is None:
        return "already" if is_known(book.rows.get(settlement.run), settlement) else "stale"
    if settlement.lost and (row.until or 0.0) > book.now:
        return "stale"
    row.endings.append(Ending(settlement.fence, settlement.worker, settlement.outcome, settlement.lost))
    row.holder = row.until = None
    row.failures += settlement.charge is Charge.FAILURE
    row.losses += settlement.charge is Charge.LOSS
    row.error = None if settlement.error is None else settlement.error.message
    keep_note(row, settlement.note)
    if isinstance(settlement.action, Finish):
        holds.end(book, row, settlement.action.state, settlement.action.reason)
        row.result = settlement.action.result
    elif row.command == "cancel":
        holds.end(book, row, "cancelled", "cancelled")
    else:
        requeue(book, row, settlement.action, settlement.called)
    if row.final:
        finish(book, row, settlement)
    return "applied"


def is_known(row: Row | None, settlement: Settlement) -> bool:
    """Return whether this settlement was recorded before. A worker that lost its lease and its rescuer have the same
    fence and worker name, so `lost` tells them apart."""
    recent = row.endings[-ATTEMPTS_SHOWN:] if row else []
    return (settlement.fence, settlement.worker, settlement.lost) in [
        (one.fence, one.worker, one.lost) for one in recent
    ]


def requeue(book: Book, row: Row, action: Requeue, called: bool) -> None:
    row.due = after(book.now, action.delay) if action.delay else row.due
    row.expires = None if called else row.expires
    others = holds.equals(book, row.new.task, row.new.unique_key)
    heir = next((other for other in others if other.waiting and row.id not in other.needs), None)
    row.state, row.command = "paused" if row.command == "pause" else "queued", None
    if heir is not None:
        if heir.body == row.body:
            heir.due, heir.failures = min(heir.due, row.due), max(heir.failures, row.failures)
        holds.end(book, row, "cancelled", "superseded")
        book.count_decision(row, "superseded", run=heir.id)


def finish(book: Book, row: Row, settlement: Settlement) -> None:
    """Write the mark first, then release the waiting runs: they are checked against the mark."""
    if row.marks and settlement.mark:
        write_mark(book, row)
    holds.release(book, row)
    if settlement.stops is not None:
        holds.cancel_all(book, book.in_group(settlement.stops), "stopped", f"{row.new.task} {row.state}")


def write_mark(book: Book, row: Row) -> None:
    if row.state == "succeeded":
        book.marks[row.about] = Mark(book.now, book.now, 0)
    elif row.state == "failed":
        known = book.mark(row.about)
        book.marks[row.about] = Mark(known.succeeded, book.now, known.failures + 1)


def may_forget(book: Book, row: Row, retention: Retention) -> tuple[bool, bool]:
    """Return whether a sweep may forget a run and whether it must. The two differ if several runs ended at one
    instant."""
    if row.finished is None or row.finished > book.now - ID_MEMORY or holds.fan_of(row.id) in book.fans:
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
