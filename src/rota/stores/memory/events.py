"""The events of the memory store: a queue of numbered rows."""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice

from msgspec.structs import replace

from rota.domain.run import Run
from rota.store import EVENT_MEMORY, EVENTS_KEPT, SUBSCRIBED, EventPage, EventQuery
from rota.stores.events import EventRow, Known, first_number


class EventLog:
    def __init__(self) -> None:
        self._rows: deque[tuple[int, EventRow]] = deque()
        self._last = 0
        self._gone = 0
        self._until = 0.0

    def is_recording(self, now: float) -> bool:
        return now < self._until

    def add(self, rows: Iterable[EventRow], runs: Mapping[str, Run]) -> None:
        """Number and keep `rows`, each with the group of its run."""
        for row in rows:
            self._last += 1
            run = runs.get(row.id) if row.of == "runs" else None
            kept = row if run is None or run.member is None else replace(row, group=run.member.group)
            self._rows.append((self._last, kept))
        while len(self._rows) > EVENTS_KEPT:
            self._drop_first()

    def read(self, query: EventQuery, now: float) -> EventPage:
        if not self.is_recording(now):  # nothing was recorded since: no cursor from before is of use
            self._last = self._gone = self._last + 1 if self._last else first_number(now)
            self._rows.clear()
        if self._until - now < SUBSCRIBED / 2:
            self._until = now + SUBSCRIBED
        known = Known(self._gone, self._last)
        passed = max(0, known.start(query) - (self._rows[0][0] - 1)) if self._rows else 0  # the numbers have no holes
        rows = list(islice(self._rows, passed, passed + query.limit))
        return known.page(now, query, rows, rows[-1][0] if rows else self._last)

    def forget(self, now: float) -> None:
        while self._rows and self._rows[0][1].at <= now - EVENT_MEMORY:
            self._drop_first()

    def _drop_first(self) -> None:
        self._gone, _ = self._rows.popleft()
