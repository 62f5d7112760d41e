"""direct: what people ask of workers."""

from collections.abc import Sequence

from rota.store import Orders
from rota.stores.book import Book


def direct(book: Book, workers: Sequence[str], seats: int | None, quiet: bool | None, stop: bool) -> list[bool]:
    """Change the orders of workers; a worker whose orders changed is hinted, also if it has no free seat."""
    return [_direct(book, worker, seats, quiet, stop) for worker in workers]


def _direct(book: Book, worker: str, seats: int | None, quiet: bool | None, stop: bool) -> bool:
    known = book.orders(worker)
    if known is None:
        return False
    orders = Orders(
        known.seats if seats is None else seats, known.quiet if quiet is None else quiet, known.stop or stop
    )
    if orders == known:
        return False
    book.put_orders(worker, orders)
    book.directed.add(worker)
    return True
