"""Which runs and rows to read."""

from collections.abc import Sequence

from msgspec import Struct

from rota.domain.run import Run, State
from rota.errors import InvalidOptions


class RunQuery(Struct, frozen=True, kw_only=True):
    """Which runs to read, newest first. A run must meet all conditions."""

    ids: Sequence[str] | None = None
    """Only the runs with these ids."""
    states: Sequence[State] = ()
    """Only runs in one of these states; empty: in any state."""
    task: str | None = None
    key: str | None = None
    """Only runs whose `key` or `unique_key` this is."""
    group: str | None = None
    limit: int = 50
    """The most runs in one page."""
    cursor: str | None = None
    """Where the page before ended: its `Page.cursor`."""


class Page(Struct, frozen=True):
    """One page of runs."""

    now: float
    """The store's time."""
    runs: list[Run]
    cursor: str | None
    """The cursor of the next page; None if this page is the last one."""


class RowQuery(Struct, frozen=True, kw_only=True):
    """Which rows to read, in the order of their names.

    Only an empty page is surely the last one, because rows that this version cannot read are left out. The next page
    begins `after` the name of the last row.
    """

    names: Sequence[str] | None = None
    """Only the rows with these names."""
    task: str | None = None
    """Only the schedules, marks or decision counts of this task."""
    key: str | None = None
    """Only the marks or decision counts of this key."""
    after: str = ""
    """Only rows whose names come after this one."""
    limit: int = 10_000
    """The most rows in one page."""


ALL_ROWS = RowQuery()


def after_cursor(cursor: str | None) -> int | None:
    """Return the place in the order of arrival at which a page ended; None for the first page."""
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 18:
        raise InvalidOptions(f"cursor {cursor!r} is not where a list of runs ended")
    return int(cursor)
