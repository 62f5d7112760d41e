"""claim: who gets which runs; and what a put may lease to a worker at once."""

from collections.abc import Sequence

from rota.domain.run import after
from rota.store import ClaimRequest
from storekit.model import holding
from storekit.model.book import Book, Row


def claim(book: Book, request: ClaimRequest, ready: bool = False, took: str | None = None) -> list[str]:
    """The best runs first. A run with losses comes only as the first, and then alone. In front of them comes what the
    worker was handed and did not take.

    What is too late to start ends first, so that the runs behind it can come.
    """
    worker, tasks, lease = request.worker, request.tasks, request.lease
    handed = kept(book, worker, lease)
    told = [] if handed is None or handed.id == took else [handed]
    free = request.free - len(told)
    holding.expire(book, [row for row in book.rows.values() if row.too_late(book.now)])
    found = told + take(book, worker, tasks, free, lease)
    book.batches[worker] = [(row.id, row.fence) for row in found]
    may_hand(book, worker, tasks if ready and free > 0 and not found else ())
    return [row.id for row in found]


def take(book: Book, worker: str, tasks: Sequence[str], free: int, lease: float) -> list[Row]:
    taken: list[Row] = []
    suspicious = any(row.holder == worker and row.losses for row in book.running())
    coming = [row for row in book.rows.values() if row.new.task in tasks and is_due(book, row)]
    for row in sorted(coming, key=lambda row: (-row.priority, row.due, row.order)):
        if len(taken) >= free or (taken and taken[0].losses):
            break
        if (row.losses and (taken or suspicious)) or not may_start(book, row):
            continue
        start(book, row, worker, after(book.now, lease))
        taken.append(row)
    return taken


def is_due(book: Book, row: Row) -> bool:
    task = book.task(row.new.task)
    return row.state == "queued" and row.due <= book.now and not row.needs and task.enabled and not task.paused


def may_start(book: Book, row: Row) -> bool:
    """Do the limits and the rate of its task let one more start?"""
    task, name, key = book.task(row.new.task), row.new.task, row.new.key
    running = [other for other in book.running() if other.new.task == name]
    if task.total is not None and len(running) >= task.total:
        return False
    if task.per_key is not None and key is not None and sum(other.new.key == key for other in running) >= task.per_key:
        return False
    bucket = bucket_of(book, row)
    if bucket is None or task.interval is None:
        return True
    return book.full_at.get(bucket, 0.0) - (task.burst - 1) * task.interval <= book.now


def bucket_of(book: Book, row: Row) -> tuple[str, str] | None:
    """The bucket that its start takes a token from. A run without a key has none where each key has its own."""
    if not book.task(row.new.task).rate_per_key:
        return row.new.task, ""
    return None if row.new.key is None else (row.new.task, row.new.key)


def start(book: Book, row: Row, worker: str, until: float) -> None:
    row.state, row.holder, row.until = "running", worker, until
    row.fence += 1
    interval, bucket = book.task(row.new.task).interval, bucket_of(book, row)
    if interval is not None and bucket is not None:
        book.full_at[bucket] = max(book.full_at.get(bucket, 0.0), book.now) + interval


def hand(book: Book, row: Row, worker: str, until: float, now: float) -> None:
    """A put leased this run to a worker that was ready and has been handed nothing since."""
    assert row.new.task in book.ready.pop(worker)
    assert (row.state, row.losses, row.needs, row.fence) == ("queued", 0, (), 0)
    assert row.due <= now
    assert not row.too_late(now)
    assert not book.task(row.new.task).gated
    assert book.task(row.new.task).enabled
    assert not book.task(row.new.task).paused
    start(book, row, worker, until)
    book.handed[worker] = row.id, row.fence
    book.batches[worker] = [book.handed[worker]]


def kept(book: Book, worker: str, lease: float) -> Row | None:
    """What the worker was handed and still holds: from this claim on for a whole lease."""
    row = book.held(*book.handed.pop(worker), worker) if worker in book.handed else None
    if row is not None:
        row.until = after(book.now, lease)
    return row


def may_hand(book: Book, worker: str, tasks: Sequence[str]) -> None:
    book.ready.pop(worker, None)
    if tasks:
        book.ready[worker] = tasks
