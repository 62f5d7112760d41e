"""renew: extend leases, and keep what handlers have noted."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.run import Lease, Note
from rota.store import Renewal
from rota.stores.book import Book


def renew(book: Book, leases: Sequence[Lease], until: float, notes: Mapping[str, Note]) -> list[Renewal]:
    """Renew leases until `until`. A lapsed lease can be renewed as long as nobody has rescued its run."""
    book.load([lease.run for lease in leases])
    return [_renew(book, lease, until, notes.get(lease.run)) for lease in leases]


def _renew(book: Book, lease: Lease, until: float, note: Note | None) -> Renewal:
    run = book.get(lease.run)
    if run is None or not run.is_leased_to(lease.fence, lease.worker):
        return Renewal.LOST
    book.save(rules.noted(replace(run, until=until), note))
    if note is not None:
        book.touched.add(run.id)
    if run.cancel_requested:
        return Renewal.CANCEL
    return Renewal.PAUSE if run.pause_requested else Renewal.OK
