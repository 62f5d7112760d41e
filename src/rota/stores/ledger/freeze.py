"""freeze: keep every run of the store from starting, and let them start again."""

from rota.store import Freeze
from rota.stores.book import Book
from rota.stores.events import record_other
from rota.stores.ledger.holds import announce


def set_freeze(book: Book, wanted: Freeze | None) -> list[bool]:
    """Freeze the store; None thaws it and wakes idle workers. Return whether that changed anything."""
    known = book.frozen()
    if wanted is None:
        book.put_freeze(None)
        if known is not None:
            record_other(book, "thawed", "tasks", "", "")
            for task in sorted({task for idle in book.idle() for task in idle.tasks}):
                announce(book, task)
        return [known is not None]
    if known is not None and known.same(wanted):
        return [False]
    book.put_freeze(wanted)
    record_other(book, "frozen", "tasks", "", "")
    return [True]
