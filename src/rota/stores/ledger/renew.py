"""renew: extend leases, and keep what handlers have noted."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.run import Lease, Note, RunHead
from rota.store import Renewal
from rota.stores.book import Book
from rota.stores.events import record


def renew(book: Book, leases: Sequence[Lease], until: float, notes: Mapping[str, Note]) -> list[Renewal]:
    """Renew leases until `until`. A lapsed lease can be renewed as long as nobody has rescued its run."""
    book.load([lease.run for lease in leases])
    return [_renew(book, lease, until, notes.get(lease.run)) for lease in leases]


def _renew(book: Book, lease: Lease, until: float, note: Note | None) -> Renewal:
    run = book.get(lease.run)
    if run is None or not run.is_leased_to(lease.fence, lease.worker):
        return Renewal.LOST
    if note is not None and _is_news(book, run, note):
        book.touched.add(run.id)
        record(book, "progress", run)
    book.save(rules.noted(replace(run, until=until), note))
    if run.cancel_requested:
        return Renewal.CANCEL
    return Renewal.PAUSE if run.pause_requested else Renewal.OK


def _is_news(book: Book, run: RunHead, note: Note) -> bool:
    """Whether `note` changes the run. A renewal that is sent again because its answer got lost does not."""
    if note.progress is not None and note.progress != run.progress:
        return True
    return note.saved is not None and note.saved != book.saved_of(run.id)
