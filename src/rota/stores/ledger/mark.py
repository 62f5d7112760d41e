"""mark: set and clear marks."""

from collections.abc import Sequence

from rota.domain import needs
from rota.domain.guards import Mark
from rota.store import MarkRow
from rota.stores.book import Book
from rota.stores.ledger.holds import meet_needs


def mark(book: Book, edits: Sequence[MarkRow]) -> list[bool]:
    return [_mark(book, edit) for edit in edits]


def _mark(book: Book, edit: MarkRow) -> bool:
    if book.mark(edit.task, edit.key) == (edit.mark or Mark()):
        return False
    if edit.mark is None:
        book.drop_mark(edit.task, edit.key)
    else:
        book.put_mark(edit.task, edit.key, edit.mark)
        met = [needs.ended(edit.task, edit.key)] if edit.mark.finished_at is not None else []
        if edit.mark.succeeded_at is not None:
            met.append(needs.done(edit.task, edit.key))
        meet_needs(book, met)
    return True
