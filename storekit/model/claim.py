"""claim: which worker gets which runs; and hand-overs."""

from collections.abc import Iterator, Sequence
from itertools import chain

from rota.domain.run import after
from rota.store import ClaimRequest
from storekit.model import holds
from storekit.model.book import Book, Row


def claim(
    book: Book, request: ClaimRequest, ready: bool = False, took: str | None = None, ended: Sequence[str] = ()
) -> list[str]:
    """Return the claimed runs, the best first. A run with losses is claimed only as the first one, and then alone. A
    run that was handed over and not taken comes before all others.

    Expired runs end first, so that the runs that wait for them can be claimed. `ended` is the order in which the store
    has ended them: their callbacks are due at the same instant, and come in that order.
    """
    worker, lease = request.worker, request.lease
    handed = kept(book, worker, lease)
    unheard = [] if handed is None or handed.id == took else [handed]
    free = request.free - len(unheard)
    late = [row for row in book.rows.values() if row.too_late(book.now)]
    holds.expire(book, sorted(late, key=lambda row: ended.index(row.id) if row.id in ended else len(ended)))
    found = unheard + take(book, request, free)
    book.batches[worker] = [(row.id, row.fence) for row in found]
    may_hand(book, request, ready and free > 0 and not found)
    return [row.id for row in found]


def take(book: Book, request: ClaimRequest, free: int) -> list[Row]:
    worker, lease = request.worker, request.lease
    taken: list[Row] = []
    suspicious = any(row.holder == worker and row.losses for row in book.running())
    coming = [row for row in book.rows.values() if serves(request, row) and is_due(book, row)]
    plain = [row for row in coming if row.new.share is None]
    for row in chain(in_turns(book, coming), sorted(plain, key=lambda row: (-row.priority, row.due, row.order))):
        if len(taken) >= free or (taken and taken[0].losses):
            break
        if (row.losses and (taken or suspicious)) or not may_start(book, row):
            continue
        start(book, row, worker, after(book.now, lease))
        taken.append(row)
        if row.new.share is not None:
            book.turns[turn_of(row)] = whose_turn(book, row)
    return taken


def in_turns(book: Book, coming: Sequence[Row]) -> Iterator[Row]:
    """Yield the runs that have a share, each after it was decided whether the one before starts. In a story, runs with
    shares are of one task, queue and priority, which is the highest."""
    left = sorted((row for row in coming if row.new.share is not None), key=lambda row: (row.due, row.order))
    while left:
        share, got = book.turns.get(turn_of(left[0]), ("", 0))
        shares = sorted({row.new.share or "" for row in left})
        if share not in shares or got >= weight(book, left[0], share):
            share = next((other for other in shares if other > share), shares[0])
        row = next(row for row in left if row.new.share == share)
        left.remove(row)
        yield row


def whose_turn(book: Book, row: Row) -> tuple[str, int]:
    """Return whose turn it is after `row` has started."""
    share, got = book.turns.get(turn_of(row), ("", 0))
    more = share == row.new.share and got < weight(book, row, share)
    return row.new.share or "", got + 1 if more else 1


def turn_of(row: Row) -> tuple[str, str, int]:
    return row.new.task, row.new.queue, row.priority


def weight(book: Book, row: Row, share: str) -> int:
    return (book.task(row.new.task).weights or {}).get(share, 1)


def serves(request: ClaimRequest, row: Row) -> bool:
    """Return whether the worker of `request` may take this run: a worker without queues takes the runs of all."""
    return row.new.task in request.tasks and (not request.queues or row.new.queue in request.queues)


def is_due(book: Book, row: Row) -> bool:
    task = book.in_force(row.new.task)
    starts = task.enabled and not task.is_paused(book.now) and book.frozen(book.now) is None
    return row.state == "queued" and row.due <= book.now and not row.needs and starts


def may_start(book: Book, row: Row) -> bool:
    """Return whether the limit, the rate and the paused keys of the task let this run start."""
    task, name, key = book.in_force(row.new.task), row.new.task, row.new.key
    if key in task.paused_keys:
        return False
    running = [other for other in book.running() if other.new.task == name]
    if task.total is not None and len(running) >= task.total:
        return False
    if task.per_key is not None and key is not None and sum(other.new.key == key for other in running) >= task.per_key:
        return False
    for limit in task.limits:
        if sum(limit in other.limits for other in book.running()) >= (book.tasks[limit].total or 0):
            return False
    bucket = bucket_of(book, row)
    if bucket is None or task.interval is None:
        return True
    return book.full_at.get(bucket, 0.0) - (task.burst - 1) * task.interval <= book.now


def bucket_of(book: Book, row: Row) -> tuple[str, str] | None:
    """Return the rate bucket of a run; None for a run without a key of a task with a rate per key."""
    if not book.in_force(row.new.task).rate_per_key:
        return row.new.task, ""
    return None if row.new.key is None else (row.new.task, row.new.key)


def start(book: Book, row: Row, worker: str, until: float) -> None:
    row.state, row.holder, row.until = "running", worker, until
    row.limits = book.task(row.new.task).limits
    row.fence += 1
    interval, bucket = book.in_force(row.new.task).interval, bucket_of(book, row)
    if interval is not None and bucket is not None:
        book.full_at[bucket] = max(book.full_at.get(bucket, 0.0), book.now) + interval


def hand(book: Book, row: Row, worker: str, until: float, now: float) -> None:
    """Record that a put leased this run to a worker that was ready and that no other run was handed over to."""
    assert serves(book.ready.pop(worker), row)
    assert (row.state, row.losses, row.needs, row.fence) == ("queued", 0, (), 0)
    assert row.due <= now
    assert not row.too_late(now)
    task, given = book.in_force(row.new.task), book.overrides.get(row.new.task)
    assert not task.gated
    assert given is None or not given.values()
    assert task.enabled
    assert not task.is_paused(now)
    assert book.frozen(now) is None
    start(book, row, worker, until)
    book.handed[worker] = row.id, row.fence
    book.batches[worker] = [book.handed[worker]]


def kept(book: Book, worker: str, lease: float) -> Row | None:
    """Return the run that was handed over to the worker and that it still has, and give it a whole lease."""
    row = book.leased(*book.handed.pop(worker), worker) if worker in book.handed else None
    if row is not None:
        row.until = after(book.now, lease)
    return row


def may_hand(book: Book, request: ClaimRequest, ready: bool) -> None:
    book.ready.pop(request.worker, None)
    if ready and request.tasks:
        book.ready[request.worker] = request
