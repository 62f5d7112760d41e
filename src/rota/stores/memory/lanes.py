"""A due index: due entries in one heap per lane and priority, later entries in one heap per lane.

Entries are removed lazily: `is_current(entry)` says whether the run of an entry still waits at that place.
"""

import heapq
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import groupby, islice

from rota.domain.run import DEFAULT_QUEUE

Entry = tuple[float, int, str, int]
"""(due_at, order of arrival, run id, priority)"""


class Lanes:
    def __init__(self, is_current: Callable[[Entry], bool]) -> None:
        self._due: dict[str, dict[int, list[Entry]]] = {}
        self._later: dict[str, list[Entry]] = {}
        self._is_current = is_current
        self.entries = 0

    def push(self, lane: str, entry: Entry) -> None:
        """Add an entry to the later entries. It moves to the due entries when the lane is read."""
        heapq.heappush(self._later.setdefault(lane, []), entry)
        self.entries += 1

    def heads(self, lanes: Sequence[str], now: float) -> Iterator[tuple[str, int, float]]:
        """Yield each lane and priority that has due entries, with the due time of the first."""
        for lane in lanes:
            for priority, heap in self._ripened(lane, now).items():
                if self._head(heap):
                    yield lane, priority, heap[0][0]

    def due(self, lanes: Sequence[str], now: float, wanted: Container[int] | None = None) -> Iterator[Entry]:
        """Yield the due entries of these priorities, or of all, by priority and then by due time."""
        levels: dict[int, list[list[Entry]]] = {}
        for lane in lanes:
            for priority, heap in self._ripened(lane, now).items():
                if (wanted is None or priority in wanted) and self._head(heap):
                    levels.setdefault(priority, []).append(heap)
        for priority in sorted(levels, reverse=True):
            yield from heapq.merge(*(self._current(heap) for heap in levels[priority]))

    def upcoming(self, lanes: Sequence[str], k: int, now: float) -> list[float]:
        """Return the first `k` due times after `now`."""
        found: list[float] = []
        for lane in lanes:
            self._ripened(lane, now)
            once = (entry for entry, _ in groupby(_in_order(self._later.get(lane, []))))
            found.extend(islice((entry[0] for entry in once if self._is_current(entry)), k))
        return heapq.nsmallest(k, found)

    def has_due(self, lane: str, priority: int, now: float) -> bool:
        return self._head(self._ripened(lane, now).get(priority, []))

    def has_later(self, lane: str) -> bool:
        return bool(self._later.get(lane))

    def prune(self) -> None:
        """Remove every entry that is not current."""
        for priorities in self._due.values():
            for priority, heap in priorities.items():
                priorities[priority] = _heap({entry for entry in heap if self._is_current(entry)})
        self._later = {
            lane: kept
            for lane, heap in self._later.items()
            if (kept := _heap({entry for entry in heap if self._is_current(entry)}))
        }
        self._due = {lane: found for lane, p in self._due.items() if (found := {k: h for k, h in p.items() if h})}
        due = sum(len(heap) for priorities in self._due.values() for heap in priorities.values())
        self.entries = due + sum(map(len, self._later.values()))

    def _ripened(self, lane: str, now: float) -> dict[int, list[Entry]]:
        """Move entries that have become due to the due heaps of the lane. Return these heaps by priority."""
        later = self._later.get(lane, [])
        while later and later[0][0] <= now:
            entry = heapq.heappop(later)
            heapq.heappush(self._due.setdefault(lane, {}).setdefault(entry[3], []), entry)
        return self._due.get(lane, {})

    def _current(self, heap: list[Entry]) -> Iterator[Entry]:
        """Yield the current entries in order, each once."""
        last: Entry | None = None
        for entry in _in_order(heap):
            if entry != last and self._is_current(entry):
                yield entry
            last = entry

    def _head(self, heap: list[Entry]) -> bool:
        """Remove entries from the top that are not current. Return whether an entry is left."""
        while heap and not self._is_current(heap[0]):
            heapq.heappop(heap)
            self.entries -= 1
        return bool(heap)


def _in_order(heap: list[Entry]) -> Iterator[Entry]:
    """Yield the entries of a heap, smallest first, without sorting it: a child is never less than its parent."""
    frontier: list[tuple[Entry, int]] = [(heap[0], 0)] if heap else []
    while frontier:
        entry, at = heapq.heappop(frontier)
        yield entry
        for child in (2 * at + 1, 2 * at + 2):
            if child < len(heap):
                heapq.heappush(frontier, (heap[child], child))


def _heap(entries: set[Entry]) -> list[Entry]:
    found = list(entries)
    heapq.heapify(found)
    return found


def lane_name(task: str, queue: str) -> str:
    """Return the name of the lanes of a task in a queue. No task and queue has a NUL in its name."""
    return task if queue == DEFAULT_QUEUE else f"{task}\x00{queue}"


def lane_of(name: str) -> tuple[str, str]:
    """Return the task and the queue of `lane_name`."""
    task, _, queue = name.partition("\x00")
    return task, queue or DEFAULT_QUEUE


def key_lane(task: str, queue: str, key: str | None) -> str:
    """Return the name of the lane of the parked runs of a key."""
    return f"{lane_name(task, queue)}\x00{key or ''}"
