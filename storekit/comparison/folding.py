"""Folds events: the last event of each run says in which state the run is."""

from collections.abc import Sequence

from rota.domain.event import GAP
from rota.domain.run import Run
from rota.store import EventQuery, Store


class Folded:
    """What the events of a store make of its runs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._cursor: str | None = None
        self._runs: dict[str, tuple[str, int]] = {}

    async def check(self, runs: Sequence[Run]) -> None:
        """Read all events since the last check, and compare what they make of the runs with `runs`."""
        is_first = self._cursor is None
        while True:
            page = await self._store.events(EventQuery(after=self._cursor, limit=7))
            self._cursor = page.cursor
            if is_first or any(event.name == GAP for event in page.events):
                self._runs = {run.id: (run.state.value, run.fence) for run in runs}  # the runs are read again
            for event in page.events:
                if event.of == "runs" and event.id is not None and event.state:
                    self._runs[event.id] = (event.state, event.fence)
            if not page.events:
                break
        for run in runs:
            assert self._runs.get(run.id) == (run.state.value, run.fence), f"{run.id}: {self._runs.get(run.id)}, {run}"
