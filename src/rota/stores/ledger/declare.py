"""declare: store the specs and schedules of the code."""

from collections.abc import Sequence

from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.schedule import Schedule, declared
from rota.domain.spec import TaskSpec, implied_limits
from rota.store import Declared, Terms
from rota.stores.book import Book, CountedDecision
from rota.stores.events import record_other
from rota.stores.idle import Arrival
from rota.stores.ledger.override import regate
from rota.stores.ledger.specs import in_force


def declare(book: Book, items: Sequence[TaskSpec | Schedule], terms: Terms | None = None) -> list[Declared]:
    """Store specs and schedules of the code. A paused task or schedule stays paused."""
    schedules = [item for item in items if isinstance(item, Schedule)]
    book.load_schedules([item.id for item in schedules] + ([*terms.versions, *terms.drop] if terms else []))
    if terms is not None and (answer := refused_terms(book, schedules, terms)) is not None:
        return [answer] * (len(items) + len(terms.drop))
    for row in implied_limits(item for item in items if isinstance(item, TaskSpec)):
        if book.spec(row.name) is None:
            book.put_spec(row)
    answers = [_declare(book, item) for item in items]
    for id in terms.drop if terms else ():
        known = book.schedule(id)
        answers.append(Declared.UNCHANGED if known is None else Declared.DROPPED)
        if known is not None:
            book.drop_schedule(id)
            record_other(book, "removed", "schedules", id, known.task, known.key)
            book.count_decision(CountedDecision(known.task, known.key, Reason.DROPPED))
    return answers


def refused_terms(book: Book, schedules: Sequence[Schedule], terms: Terms) -> Declared | None:
    """Return the answer of a declaration that changes nothing, because it was carried out before or its terms do not
    hold; None if it is to be carried out."""
    known = {item.id: book.schedule(item.id) for item in schedules}
    done = all((row := known[item.id]) is not None and declared(item, row, book.now) is row for item in schedules)
    if done and not any(book.schedule(id) for id in terms.drop):
        return Declared.UNCHANGED
    if any((row := known[item.id]) is not None and row.owner != item.owner for item in schedules):
        return Declared.TAKEN
    kept = all((row.version if (row := book.schedule(id)) else 0) == version for id, version in terms.versions.items())
    return None if kept else Declared.CONFLICT


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
    kept = known or TaskSpec(spec.name)
    spec = replace(spec.declaration(), paused=kept.paused, paused_keys=kept.paused_keys, paused_until=kept.paused_until)
    if spec == known:
        return Declared.UNCHANGED
    before = in_force(book, spec.name) or spec
    book.put_spec(spec)
    if known is None:
        return Declared.ADDED
    regate(book, before, in_force(book, spec.name) or spec)  # what an operator says may hide the change
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
