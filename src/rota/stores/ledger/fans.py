"""fan: make a fan, and say how many children it has. Its counts change in the transactions that end its children."""

from msgspec.structs import replace

from rota.domain.fan import Fan
from rota.stores.book import Book
from rota.stores.ledger.holds import let_in


def put_fan(book: Book, id: str, total: int | None, allowed: int | None) -> list[bool]:
    """Make the fan `id`, or give it its `total`; the first total stays. Return whether that changed anything."""
    known = book.fan(id)
    if known is not None and (known.total is not None or total is None):
        return [False]
    fan = Fan(id, total, allowed, created_at=book.now) if known is None else replace(known, total=total)
    book.put_fan(fan)
    let_in(book, known, fan)
    return [True]
