"""declare: store the specs and schedules of the code."""

from collections.abc import Sequence

from msgspec.structs import replace

from rota.domain.schedule import Schedule, declared
from rota.domain.spec import TaskSpec
from rota.store import Declared
from rota.stores.book import Book
from rota.stores.events import record_other
from rota.stores.idle import Arrival
from rota.stores.ledger.holds import announce


def declare(book: Book, items: Sequence[TaskSpec | Schedule]) -> list[Declared]:
    """Store specs and schedules of the code. A paused task or schedule stays paused."""
    book.load_schedules([item.id for item in items if isinstance(item, Schedule)])
    return [_declare(book, item) for item in items]


def _declare(book: Book, item: TaskSpec | Schedule) -> Declared:
    if isinstance(item, TaskSpec):
        answer, of, id, task, key = _declare_task(book, item), "tasks", item.name, item.name, None
    else:
        answer, of, id, task, key = _declare_schedule(book, item), "schedules", item.id, item.task, item.key
    if answer in (Declared.ADDED, Declared.CHANGED):
        record_other(book, "declared", of, id, task, key, answer.value)
    return answer


def _declare_task(book: Book, spec: TaskSpec) -> Declared:
    known = book.spec(spec.name)
    spec = replace(spec, paused=known.paused if known else False)
    if spec == known:
        return Declared.UNCHANGED
    book.put_spec(spec)
    if known is None:
        return Declared.ADDED
    regated = (spec.limit, spec.rate, spec.limits) != (known.limit, known.rate, known.limits)
    if spec.rate != known.rate:
        book.forget_rates(spec.name)  # the state of the old rate could delay runs under the new rate for days
    if regated:
        book.unpark_all(spec.name)
    if regated or (spec.enabled and not known.enabled):
        announce(book, spec.name)
    return Declared.CHANGED


def _declare_schedule(book: Book, new: Schedule) -> Declared:
    known = book.schedule(new.id)
    if known is not None and known.owner != new.owner:
        return Declared.TAKEN
    after = declared(new, known, book.now)
    if after is known:
        return Declared.UNCHANGED
    keep_schedule(book, after)
    return Declared.ADDED if known is None else Declared.CHANGED


def keep_schedule(book: Book, schedule: Schedule) -> None:
    book.put_schedule(schedule)
    if schedule.fires_at is not None and not schedule.paused:
        book.arrivals.append(Arrival(None, schedule.fires_at))
