"""The spec of a task that is in force: what its code says, with what an operator says in its place."""

from rota.domain.overrides import OVERRIDE_ROW, Overrides
from rota.domain.run import Run
from rota.domain.spec import TaskSpec, overridden
from rota.stores.book import Book


def overrides_of(book: Book, task: str) -> Overrides | None:
    row = book.spec(OVERRIDE_ROW + task)
    return None if row is None else row.overrides


def in_force(book: Book, task: str) -> TaskSpec | None:
    spec, overrides = book.spec(task), overrides_of(book, task)
    return spec if overrides is None else (spec or TaskSpec(task)).in_force(overrides)


def with_overrides(book: Book, runs: list[Run]) -> list[Run]:
    """Return claimed runs with the policies by which they are called."""
    found = {task: each for task in {run.task for run in runs} if (each := overrides_of(book, task))}
    return overridden(runs, found) if found else runs
