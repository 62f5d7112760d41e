"""override: set what an operator says of a task."""

from rota.domain.overrides import Overrides
from rota.domain.spec import TaskSpec, override_row
from rota.store import Declared
from rota.stores.book import Book
from rota.stores.events import record_other
from rota.stores.ledger.holds import announce
from rota.stores.ledger.specs import in_force, overrides_of


def override(book: Book, task: str, new: Overrides) -> list[Declared]:
    """Store the overrides of a task, if their version is the one after the stored one."""
    known = overrides_of(book, task)
    if known == new:
        return [Declared.UNCHANGED]
    if new.version != (known.version if known else 0) + 1:
        return [Declared.CONFLICT]
    if book.spec(task) is None:  # also a task that no app has declared
        book.put_spec(TaskSpec(task))
    before = in_force(book, task) or TaskSpec(task)
    book.put_spec(override_row(task, new))
    regate(book, before, in_force(book, task) or before)
    record_other(book, "declared", "tasks", task, task, None, Declared.CHANGED.value)
    return [Declared.CHANGED]


def regate(book: Book, before: TaskSpec, after: TaskSpec) -> None:
    """Let the runs of a task feel its new limits, rate and switch at once."""
    regated = (after.limit, after.rate, after.limits) != (before.limit, before.rate, before.limits)
    if after.rate != before.rate:
        book.forget_rates(after.name)  # the state of the old rate could delay runs under the new rate for days
    if regated:
        book.unpark_all(after.name)
    if regated or (after.enabled and not before.enabled):
        announce(book, after.name)
