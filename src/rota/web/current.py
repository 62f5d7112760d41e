"""Current: what streams of events send whole, read once for all of them."""

from collections.abc import Collection, Iterator

from rota.app.app import Rota
from rota.views.stats import stat_views
from rota.views.values import Record, record
from rota.views.workers import WorkerView, worker_views
from rota.web.topics import CURRENT, Selection, message

MINUTES = 2
"""Minutes of which the counts are sent: the one that has ended, and the one that goes on."""
AGES = ("seen_at", "silent_for")
"""Fields of a worker that change without news."""


class Current:
    """The depths of tasks, the counts of the last minutes and the workers, as they were read last."""

    def __init__(self, app: Rota) -> None:
        self.changed = False
        """Something has happened since the last read."""
        self._app = app
        self._depths: list[tuple[str, Record]] = []
        self._stats: list[tuple[str, Record]] = []
        self._workers: list[WorkerView] = []
        self.known: set[str] = set()

    async def read(self, topics: Collection[str]) -> None:
        client = self._app.client()
        self.changed = False
        if "depths" in topics:
            self._depths = [(depth.task, record(depth)) for depth in (await client.depths()).items]
        if "stats" in topics:
            found = (await client.stats(MINUTES)).items
            self._stats = [(view.task or "", record(view)) for view in stat_views(found)]
        if "workers" in topics:
            self._workers = await worker_views(client)
        self.known.update(topics)

    def news(self, selection: Selection, sent: dict[str, bytes]) -> bytes:
        """Return the messages that differ from those in `sent`, and note them there."""
        found = b""
        for topic in CURRENT:
            if topic in selection.topics and topic in self.known:
                told = message(topic, {"items": list(self._rows(topic, selection))})
                if sent.get(topic) != told:
                    sent[topic] = told
                    found += told
        return found

    def _rows(self, topic: str, selection: Selection) -> Iterator[Record]:
        if topic == "workers":
            for view in self._workers:
                tasks = [task for task in view.tasks if selection.wants_task(task)]
                if tasks or not (selection.tasks or selection.task):
                    shown = record(view) | {"tasks": tasks, "queues": list(view.queues)}
                    yield {name: value for name, value in shown.items() if name not in AGES}
        else:
            rows = self._depths if topic == "depths" else self._stats
            yield from (row for task, row in rows if selection.wants_task(task))
