"""settle: end or requeue claimed runs."""

from collections.abc import Sequence

from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.run import RunHead, State
from rota.domain.settlement import Settlement, Verdict
from rota.stores.book import Book, CountedDecision
from rota.stores.events import record
from rota.stores.idle import Arrival
from rota.stores.ledger import holds
from rota.stores.ledger.specs import in_force

_APPLIED, _QUEUED = Verdict.APPLIED, State.QUEUED


def settle(book: Book, settlements: Sequence[Settlement]) -> list[Verdict]:
    book.load([settlement.run for settlement in settlements])
    gated: dict[str, bool] = {}
    return [_settle_one(book, settlement, gated) for settlement in settlements]


def _settle_one(book: Book, settlement: Settlement, gated: dict[str, bool]) -> Verdict:
    """Apply one settlement. `gated` has the tasks of the batch: whether the end of one run lets another one start."""
    run = book.get(settlement.run)
    verdict = rules.judge(run, settlement, book.now)
    if run is None or verdict is not _APPLIED:
        return verdict
    ended = rules.apply(run, settlement, book.now)
    if ended.unique_key is not None and not ended.state.final:
        ended = _give_way(book, ended)
    book.save(ended)
    book.touched.add(ended.id)
    if book.recording:
        _record_settled(book, ended, settlement)
    if ended.state is _QUEUED:
        book.arrivals.append(Arrival(ended.task, ended.due_at, ended.queue))
    if ended.writes_mark and settlement.mark and ended.state.final:
        mark = book.mark(ended.task, ended.mark_key)
        book.put_mark(ended.task, ended.mark_key, rules.mark_after(mark, ended, book.now))
    if ended.state.final:
        holds.release(book, ended)  # after its mark is written: the runs that wait are judged by that mark
    if run.task not in gated:
        spec = in_force(book, run.task)
        gated[run.task] = spec is not None and spec.gated
    if gated[run.task]:
        holds.freed(book, run)
    holds.freed_by(book, run)
    if settlement.stops is not None and ended.state.final:
        holds.cancel_group(book, settlement.stops, Reason.STOPPED, f"{ended.task} {ended.state}")
    return verdict


def _record_settled(book: Book, ended: RunHead, settlement: Settlement) -> None:
    """Record what became of a run. A run that waits again was lost, is retried, or was given back."""
    name = ended.state.value
    if ended.state is State.QUEUED:
        name = "lost" if settlement.lost else "retried" if settlement.error else "queued"
    record(book, name, ended, None if ended.state.final else settlement.outcome, settlement.worker)


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
                book.arrivals.append(Arrival(heir.task, heir.due_at, heir.queue))
            book.count_decision(CountedDecision(run.task, run.key, Reason.SUPERSEDED, run=holder.id))
            return rules.supersede(run, book.now)
    return run
