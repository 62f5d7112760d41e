"""Holds: a queued run is in the due index if and only if nothing holds the run: it is not paused, it is not parked, and
it has no needs. `unpark` puts parked runs into the index, `meet_needs` puts runs there whose last need is met.

A claim parks a due run while the limit or the rate of its key is used up. The invariant: the index has the best due
runs of each key and queue, as many as may start. So a verb that ends, pauses or moves a running or ready run unparks
the best parked run of that key in each queue. One run too many does no harm, because the next claim parks it again; one
too few would wait for ever.
"""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from rota.domain import needs
from rota.domain import settlement as rules
from rota.domain.decision import Reason
from rota.domain.fan import Fan, fan_of, need_of
from rota.domain.guards import cooled_down_at
from rota.domain.joins import moved_expiry
from rota.domain.run import RunHead, State, after
from rota.stores.book import Book, CountedDecision
from rota.stores.bounds import LEDGER
from rota.stores.events import record
from rota.stores.idle import Arrival
from rota.stores.ledger.specs import in_force

_RUNNING = State.RUNNING


def holders(book: Book, task: str, unique_key: str) -> list[RunHead]:
    """The unfinished runs of `task` that have `unique_key`. Runs that are too late to start are expired first: a run
    that joined one of them would be lost with it."""
    found = book.holders(task, unique_key)
    late = [run for run in found if rules.too_late(run, book.now)]
    if not late:
        return list(found)
    expire(book, late)
    # Read the holders again: one of them may have waited for the end of a run that has just expired.
    return list(book.holders(task, unique_key))


def expire(book: Book, late: Sequence[RunHead]) -> None:
    """End the runs `late`, whose time to start has passed, each with a decision of its own."""
    for run in late:
        ended = rules.expire(run, book.now)
        book.save(ended)
        book.touched.add(run.id)
        record(book, ended.state.value, ended)
        book.count_decision(CountedDecision(run.task, run.key, Reason.EXPIRED, run=run.id))
        release(book, ended)
    for run in late:  # after all of them have ended: else `freed` would unpark a run that is about to expire
        freed(book, run)


def expire_due(book: Book) -> list[str]:
    """End queued runs that are too late to start, LEDGER.expired at most. Return their ids."""
    late = book.expired()
    expire(book, late)
    return [run.id for run in late]


def freed(book: Book, run: RunHead) -> None:
    """`run`, as it was before this change, no longer runs and is no longer ready: if its task has a limit or a rate,
    unpark another run of its key and hint a worker."""
    spec = in_force(book, run.task)
    if spec is None or not spec.gated or not (run.state is _RUNNING or _ready(book, run)):
        return
    limited = spec.limit is not None and spec.limit.per_key is not None
    if run.key is not None and (limited or run.state is not State.RUNNING):  # an end gives a rate no token back
        unpark(book, run.task, run.key, 1)
    book.arrivals.append(Arrival(run.task, book.now, queue=None))


def freed_by(book: Book, run: RunHead) -> None:
    """`run`, as it was before this change, no longer runs: its lease counts against no named limit any more. Hint a
    worker for each other task that shares one of them and has due runs."""
    rows = book.uncount(run.id)
    if rows:
        tasks = [task for task in book.limited_by(rows) if task != run.task]
        due = dict.fromkeys(lane.task for lane in book.lanes(tasks, ()) if lane.head <= book.now)
        book.arrivals.extend(Arrival(task, book.now, None) for task in due)


def unmet(book: Book, wanted: Sequence[str]) -> tuple[str, ...]:
    """The needs in `wanted` that are not met yet. A run among them is saved as `awaited`."""
    book.load([need for need in wanted if needs.named(need) is None])
    return tuple(need for need in wanted if _is_to_come(book, need))


def _is_to_come(book: Book, need: str) -> bool:
    if (name := needs.named(need)) is not None:
        mark = book.mark(name.task, name.key)
        return (mark.finished_at if name.any_end else mark.succeeded_at) is None
    run = book.get(need)
    if run is None or run.state.final:
        return False
    if not run.awaited:
        book.save(replace(run, awaited=True))
    return True


def release(book: Book, ended: RunHead) -> None:
    """`ended` has ended: a run that waited for nothing else may start. The mark of `ended` is written before: runs that
    waited are judged by that mark."""
    if ended.awaited or ended.writes_mark:
        meet_needs(book, met_by(ended))
    if ended.awaited:
        put_callbacks(book, ended)
    if "." in ended.id:
        count_in_fan(book, ended)


def put_callbacks(book: Book, ended: RunHead) -> None:
    """Put the callbacks of a run for its final state. Their ids derive from its id, so they are put once; they have no
    guards, so that none is refused."""
    for callback in book.take_callbacks(ended.id):
        if callback.state is ended.state:
            new = callback.to_run()
            book.add(new, new.due_at(book.now), parked=False)
            book.arrivals.append(Arrival(new.task, book.now, new.queue))


def count_in_fan(book: Book, ended: RunHead) -> None:
    """Count the end of a child of a fan. The last end that the gather waits for lets the gather in."""
    id = fan_of(ended.id)
    fan = None if id is None else book.fan(id)
    if fan is None:
        return
    after = replace(fan, ended=fan.ended + 1, failed=fan.failed + (ended.state is not State.SUCCEEDED))
    book.put_fan(after)
    let_in(book, fan, after)


def let_in(book: Book, before: Fan | None, fan: Fan) -> None:
    if fan.over and not (before is not None and before.over):
        meet_needs(book, [need_of(fan.id)])


def met_by(ended: RunHead) -> list[str]:
    """The needs that the end of `ended` meets."""
    met = [ended.id] if ended.awaited else []
    if ended.writes_mark:
        met.append(needs.ended(ended.task, ended.mark_key))
        if ended.state is State.SUCCEEDED:
            met.append(needs.done(ended.task, ended.mark_key))
    return met


def meet_needs(book: Book, met: Sequence[str]) -> None:
    """The needs `met` are met: a run that waited for nothing else may start. The ends are remembered first, because
    cooldowns are judged by them: the order of the runs that wait makes no difference."""
    waiting = [run for run in book.waiters(met) if not run.state.final and not set(met).isdisjoint(run.needs)]
    for need in {need for run in waiting for need in run.needs if need in met}:
        _remember_end(book, need)
    for run in waiting:
        left = tuple(need for need in run.needs if need not in met)
        due_at = run.due_at
        if run.cooldowns and not left:
            due_at = after(cooled_down_at(run.cooldowns, book.mark(run.task, run.mark_key), due_at), 0)
        book.save(replace(run, needs=left, due_at=due_at, expires_at=moved_expiry(run, due_at)))
        if not left and run.state is State.QUEUED:
            book.arrivals.append(Arrival(run.task, due_at, run.queue))


def _remember_end(book: Book, need: str) -> None:
    """A run that waited for any end of `need` has seen one, which may be a cancel: remember it in the mark, so that no
    run waits for that end again."""
    name = needs.named(need)
    if name is not None and name.any_end and (mark := book.mark(name.task, name.key)).finished_at is None:
        book.put_mark(name.task, name.key, replace(mark, finished_at=book.now))


def cancel_group(
    book: Book,
    group: str,
    reason: Reason,
    note: str | None,
    besides: Collection[str] = (),
    keep: Collection[str] = (),
) -> list[RunHead]:
    """End the waiting runs of `group`, except the runs `besides` and the runs with a unique key in `keep`. Count a
    decision for each, and return them."""
    waiting = [run for run in book.grouped(group) if run.state in (State.QUEUED, State.PAUSED)]
    gone = [run for run in waiting if run.id not in besides and run.unique_key not in keep]
    for run in gone:
        book.count_decision(CountedDecision(run.task, run.key, reason, run=run.id, note=note))
    end_waiting(book, gone, reason, note)
    return gone


def end_waiting(book: Book, waiting: Sequence[RunHead], reason: Reason, note: str | None) -> None:
    over = [rules.cancel(run, book.now, note, reason) for run in waiting]
    for run, ended in zip(waiting, over, strict=True):
        book.save(ended)
        book.touched.add(run.id)
        record(book, ended.state.value, ended)
    for run, ended in zip(waiting, over, strict=True):  # after all have ended: else `freed` would unpark one of them
        release(book, ended)
        freed(book, run)


def announce(book: Book, task: str) -> None:
    """Waiting runs of `task` may start now: hint an idle worker for each, LEDGER.announced at most."""
    book.arrivals.extend([Arrival(task, book.now, queue=None)] * book.pending(task, LEDGER.announced))


def _ready(book: Book, run: RunHead) -> bool:
    return run.state is State.QUEUED and not run.parked and not run.needs and run.due_at <= book.now


def unpark(book: Book, task: str, key: str, most: int) -> None:
    """Unpark the best parked runs of a key, `most` at most in each queue: a queue may have no worker."""
    for _ in range(most):
        best = book.best_parked(task, key)
        if not best:
            break
        for run in best:
            book.save(replace(run, parked=False))
            book.arrivals.append(Arrival(task, run.due_at, run.queue))
