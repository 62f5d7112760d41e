"""Search: the page of a query while a store gathers it from an indexed walk.

A store reads runs in the order of the query by an index, some at a time, and gives them to `Search.take` with their
places. It judges `state`, `task`, `key` and `group` itself; `matches` judges all conditions. So a condition means the
same in every store. See docs/decisions/0024.
"""

import time
from collections.abc import Sequence
from operator import itemgetter

from rota.domain.run import Run
from rota.errors import InvalidOptions
from rota.store import Page, Position, RunQuery, after_cursor, matches
from rota.store.queries import UNORDERED, instant_of

SEARCH_ROWS = 5000
"""The most runs that one page looks at, if a condition is judged run by run."""
SEARCH_SECONDS = 0.1
"""The longest time for that."""
CHUNK = 500
"""The most runs that such a page reads at once."""

Found = tuple[Position, Run | None]
"""A run with its place; None for a run that this version cannot read."""


class Search:
    """Gathers one page. `after` is the place behind which the store reads on."""

    def __init__(self, query: RunQuery, indexed: bool = True) -> None:
        """`indexed`: whether the store has an index for the states, tasks and the key of the query."""
        self.query = query
        self._walks = query.walks or (query.brief and not indexed and not query.sorts)
        self._begin = _first_place(query)
        # runs to be sorted are read in the order of arrival, all of them
        self.after = None if query.sorts else self._begin
        self.goes_on = not query.impossible
        self._found: list[tuple[Position, Run]] = []
        self._looked = 0
        self._seen_at: float | None = None
        self._cursor: Position | None = None
        self._back_to: float | None = None
        self._deadline = time.monotonic() + SEARCH_SECONDS

    @property
    def wanted(self) -> int:
        """How many runs the store reads next."""
        if self.query.sorts:
            return SEARCH_ROWS + 1
        missing = self.query.limit + 1 - len(self._found)
        return min(max(missing, CHUNK // 10), CHUNK) if self._walks else missing

    def take(
        self,
        some: Sequence[Found],
        following: Position | None,
        looked: int | None = None,
        seen_at: float | None = None,
    ) -> None:
        """Add those of the runs `some` that match. The store reads on behind `following`, None if there are no more
        runs. `looked`: how many runs the store looked at to find `some`; `seen_at`: the instant of the last of them."""
        self._looked += len(some) if looked is None else looked
        for place, run in some:
            if run is None:
                continue
            self._seen_at = instant_of(run, self.query.order)
            if self._is_past(run):
                self.goes_on = False
                return
            if matches(run, self.query):
                if len(self._found) == self.query.limit and not self.query.sorts:
                    self._cursor, self.goes_on = self._found[-1][0], False
                    return
                self._found.append((place, run))
        self._seen_at = self._seen_at if seen_at is None else seen_at
        self.after, self.goes_on = following, following is not None
        if self.query.sorts and len(self._found) > SEARCH_ROWS:
            raise InvalidOptions(
                f"order={self.query.order!r} sorts at most {SEARCH_ROWS:,} runs here, and more match: narrow the "
                "filter, or take the order of arrival"
            )
        if self.goes_on and self._walks and (self._looked >= SEARCH_ROWS or time.monotonic() > self._deadline):
            self._stop()

    def _stop(self) -> None:
        """End the page before it is full."""
        self.goes_on, self._cursor = False, self.after
        self._back_to = self._seen_at

    def _is_past(self, run: Run) -> bool:
        """Return whether all runs from this one on are older than `since`, or due at `until` or later."""
        query = self.query
        if query.order == "due":
            return query.until is not None and query.by == "due" and not query.sorts and run.due_at >= query.until
        if query.since is None or query.by != query.order or query.sorts:
            return False
        slack = UNORDERED if query.order == "created" else 0.0
        return (instant_of(run, query.order) or 0.0) < query.since - slack

    def page(self, now: float) -> Page:
        if self.query.sorts:
            return self._sorted(now)
        cursor = None if self._cursor is None else self._cursor.cursor(self.query.order)
        return Page(now, [run for _, run in self._found], cursor, self._back_to)

    def _sorted(self, now: float) -> Page:
        order, begin, limit = self.query.order, self._begin, self.query.limit
        placed = [(Position(instant_of(run, order) or 0.0, place.seq), run) for place, run in self._found]
        following = [one for one in placed if begin is None or (one[0] > begin if order == "due" else one[0] < begin)]
        page = sorted(following, key=itemgetter(0), reverse=order != "due")[:limit]
        cursor = page[-1][0].cursor(order) if len(following) > limit else None
        return Page(now, [run for _, run in page], cursor)


def _first_place(query: RunQuery) -> Position | None:
    """Return the place behind which the page begins: the cursor, or the bound from which a list in that order goes."""
    if query.cursor is None and query.since is not None and query.by == query.order == "due":
        return Position(query.since, 0)
    if query.cursor is None and query.until is not None and query.by == query.order == "finished":
        return Position(query.until, 0)
    return after_cursor(query)


def behind(some: Sequence[Found], wanted: int) -> Position | None:
    """Return the place behind which a store reads on that was to read `wanted` runs and has found `some`."""
    return some[-1][0] if len(some) == wanted else None


def of_ids(query: RunQuery, found: dict[str, Run], now: float) -> Page:
    """Return the page of a query with ids, in the order of these ids."""
    some = [found[id] for id in query.ids or () if id in found]
    return Page(now, [run for run in some if matches(run, query)], None)
