"""settle, renew and expire: the ends of claimed runs, their leases, and runs that are too late to start."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.run import Lease, Note, RunHead, State
from rota.domain.settlement import Settlement, Verdict
from rota.store import Renewal
from rota.stores.book import Book, CountedDecision
from rota.stores.ledger import holds


def settle(book: Book, settlements: Sequence[Settlement]) -> list[Verdict]:
    book.load([settlement.run for settlement in settlements])
    return [_settle(book, settlement) for settlement in settlements]


def _settle(book: Book, settlement: Settlement) -> Verdict:
    run = book.get(settlement.run)
    verdict = rules.judge(run, settlement, book.now)
    if run is None or verdict is not Verdict.APPLIED:
        return verdict
    ended = rules.apply(run, settlement, book.now)
    if ended.unique_key is not None and not ended.state.final:
        ended = _give_way(book, ended)
    book.save(ended)
    book.touched.add(ended.id)
    if ended.state is State.QUEUED:
        book.arrivals.append((ended.task, ended.due_at))
    if ended.writes_mark and settlement.mark and ended.state.final:
        mark = book.mark(ended.task, ended.mark_key)
        book.put_mark(ended.task, ended.mark_key, rules.mark_after(mark, ended, book.now))
    if ended.state.final:
        holds.release(book, ended)  # after its mark is written: the runs that wait are judged by that mark
    holds.freed(book, run)
    if settlement.stops is not None and ended.state.final:
        others = holds.waiting_in(book, settlement.stops)
        holds.cancel_all(book, others, Reason.STOPPED, f"{ended.task} {ended.state}")
    return verdict


def _give_way(book: Book, run: RunHead) -> RunHead:
    """End `run` as superseded if it is about to wait again while another run with its unique key waits.

    A waiting run with the same arguments takes the failures and the earlier due time of `run`. A waiting run with other
    arguments is other work: it keeps its own due time and has no failures.
    """
    for holder in holds.holders(book, run.task, run.unique_key or ""):
        waits = holder.id != run.id and holder.state is not State.RUNNING
        if waits and run.id not in holder.needs:  # a run does not yield to a run that waits for its end
            if book.same_work(holder.id, run.id):
                heir = rules.inherit(holder, run)
                book.save(heir)
                book.arrivals.append((heir.task, heir.due_at))
            book.count_decision(CountedDecision(run.task, run.key, Reason.SUPERSEDED, run=holder.id))
            return rules.supersede(run, book.now)
    return run


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


def expire(book: Book) -> list[str]:
    """End queued runs that are too late to start. Return their ids."""
    late = book.expired()
    holds.expire(book, late)
    return [run.id for run in late]
