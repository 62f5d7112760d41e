"""edit: people change the due time, the expiry, the priority or the arguments of queued runs."""

from collections.abc import Sequence

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.edits import RunEdit, edited
from rota.domain.joins import afresh
from rota.domain.run import RunHead, State
from rota.store import Edited
from rota.stores.book import Book, CountedDecision
from rota.stores.events import record
from rota.stores.idle import Arrival
from rota.stores.ledger.holds import freed


def edit(book: Book, edits: Sequence[RunEdit], note: str | None, by: str | None) -> list[Edited]:
    book.load([one.run for one in edits])
    return [_edit_run(book, one, note, by) for one in edits]


def _edit_run(book: Book, edit: RunEdit, note: str | None, by: str | None) -> Edited:
    """Change the run, if it is queued and has the body that the edit replaces. A run with other arguments starts
    afresh."""
    run = book.get(edit.run)
    if run is None or run.state is not State.QUEUED or rules.too_late(run, book.now):
        return Edited.STALE
    body = book.body_of(run.id) if edit.body is not None else None
    if edit.body is not None and body not in (edit.body, edit.replaces):
        return Edited.STALE
    after = edited(run, edit)
    if after == run and edit.body == body:
        return Edited.UNCHANGED
    # A parked run that moved is unparked: the next claim checks the limit again, at the run's new place in line.
    moved = (after.due_at, after.priority) != (run.due_at, run.priority)
    after = replace(after, parked=run.parked and not moved)
    if after.share != run.share:
        book.put_share(run.id, after.share or "")
    if book.rewrite(run.id, edit.body, after.priority, joined=False):
        after = afresh(after, book.now)
    book.save(after)
    book.touched.add(run.id)
    record(book, Reason.EDITED.value, after, Reason.EDITED.value)
    book.count_decision(CountedDecision(run.task, run.key, Reason.EDITED, run=run.id, note=note, by=by))
    _move(book, run, after)
    return Edited.CHANGED


def _move(book: Book, before: RunHead, after: RunHead) -> None:
    """The run has another place in line: hint a worker if it may start sooner, and let another start if it is later."""
    if not after.needs and (after.due_at < before.due_at or after.parked != before.parked):
        book.arrivals.append(Arrival(after.task, after.due_at, after.queue))
    if after.due_at > before.due_at or after.priority < before.priority:
        freed(book, before)
