"""The due index: one heap per (task, priority), with stale entries dropped when they surface."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

Entry = tuple[float, int, str]
"""(due_at, order of arrival, run id)"""


class Lanes:
    def __init__(self, stands: Callable[[Entry], bool]) -> None:
        self._heaps: dict[str, dict[int, list[Entry]]] = {}
        self._stands = stands
        self.entries = 0

    def push(self, task: str, priority: int, entry: Entry) -> None:
        heapq.heappush(self._heaps.setdefault(task, {}).setdefault(priority, []), entry)
        self.entries += 1

    def pop_due(self, tasks: Sequence[str], now: float) -> Iterator[str]:
        """Run ids that are due, highest priority first, then the longest due; each leaves the index."""
        lanes = self._of(tasks)
        for priority in sorted({priority for priority, _ in lanes}, reverse=True):
            level = [heap for p, heap in lanes if p == priority]
            while ready := [heap for heap in level if self._head(heap, now)]:
                entry = self._drop(min(ready, key=lambda heap: heap[0]))
                yield entry[2]

    def upcoming(self, tasks: Sequence[str], k: int) -> list[float]:
        """The next k due instants of these tasks."""
        lanes = (filter(self._stands, _in_order(heap)) for _, heap in self._of(tasks) if self._head(heap))
        return heapq.nsmallest(k, (entry[0] for lane in lanes for entry in islice(lane, k)))

    def rebuild(self, entries: Iterable[tuple[str, int, Entry]]) -> None:
        self._heaps, self.entries = {}, 0
        for task, priority, entry in entries:
            self.push(task, priority, entry)

    def _of(self, tasks: Sequence[str]) -> list[tuple[int, list[Entry]]]:
        return [lane for task in tasks for lane in self._heaps.get(task, {}).items()]

    def _head(self, heap: list[Entry], now: float | None = None) -> bool:
        """Is there a standing entry on top, due by `now`?"""
        while heap and not self._stands(heap[0]):
            self._drop(heap)
        return bool(heap) and (now is None or heap[0][0] <= now)

    def _drop(self, heap: list[Entry]) -> Entry:
        self.entries -= 1
        return heapq.heappop(heap)


def _in_order(heap: list[Entry]) -> Iterator[Entry]:
    """The entries of a heap, smallest first, without sorting it: a child is never smaller than its parent."""
    frontier = [(heap[0], 0)] if heap else []
    while frontier:
        entry, at = heapq.heappop(frontier)
        yield entry
        for child in (2 * at + 1, 2 * at + 2):
            if child < len(heap):
                heapq.heappush(frontier, (heap[child], child))
