"""A due index: one heap per (lane, priority), with entries that no longer stand dropped when they surface."""

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

Entry = tuple[float, int, str]
"""(due_at, order of arrival, run id)"""


class Lanes:
    """Entries are never taken out: a run that leaves the index makes its entry fall, and `stands` tells."""

    def __init__(self, stands: Callable[[Entry], bool]) -> None:
        self._heaps: dict[str, dict[int, list[Entry]]] = {}
        self._stands = stands
        self.entries = 0

    def push(self, lane: str, priority: int, entry: Entry) -> None:
        heapq.heappush(self._heaps.setdefault(lane, {}).setdefault(priority, []), entry)
        self.entries += 1

    def heads(self, lanes: Sequence[str]) -> Iterator[tuple[str, int, float]]:
        """Each (lane, priority) that has entries, and when its first is due."""
        for lane in lanes:
            for priority, heap in self._heaps.get(lane, {}).items():
                if self._head(heap):
                    yield lane, priority, heap[0][0]

    def due(self, lanes: Sequence[str], now: float) -> Iterator[Entry]:
        """What is due, highest priority first, then the longest due."""
        levels: dict[int, list[list[Entry]]] = {}
        for lane in lanes:
            for priority, heap in self._heaps.get(lane, {}).items():
                if self._head(heap):
                    levels.setdefault(priority, []).append(heap)
        for priority in sorted(levels, reverse=True):
            yield from heapq.merge(*(self._until(heap, now) for heap in levels[priority]))

    def upcoming(self, lanes: Sequence[str], k: int, now: float) -> list[float]:
        """The next k due instants after now."""
        streams = (
            islice((entry[0] for entry in self._standing(heap) if entry[0] > now), k)
            for lane in lanes
            for heap in self._heaps.get(lane, {}).values()
            if self._head(heap)
        )
        return heapq.nsmallest(k, (due_at for stream in streams for due_at in stream))

    def prune(self) -> None:
        """Drop every entry that no longer stands."""
        self.entries = 0
        for priorities in self._heaps.values():
            for priority, heap in priorities.items():
                standing = list({entry[2]: entry for entry in heap if self._stands(entry)}.values())
                heapq.heapify(standing)
                priorities[priority] = standing
                self.entries += len(standing)
        self._heaps = {lane: found for lane, p in self._heaps.items() if (found := {k: h for k, h in p.items() if h})}

    def _until(self, heap: list[Entry], now: float) -> Iterator[Entry]:
        for entry in self._standing(heap):
            if entry[0] > now:
                return
            yield entry

    def _standing(self, heap: list[Entry]) -> Iterator[Entry]:
        """Entries in order, each run once. A heap need not be sorted for that: a child is never smaller than its
        parent."""
        frontier = [(heap[0], 0)] if heap else []
        last: Entry | None = None
        while frontier:
            entry, at = heapq.heappop(frontier)
            if entry != last and self._stands(entry):
                yield entry
            last = entry
            for child in (2 * at + 1, 2 * at + 2):
                if child < len(heap):
                    heapq.heappush(frontier, (heap[child], child))

    def _head(self, heap: list[Entry]) -> bool:
        """Is there a standing entry on top?"""
        while heap and not self._stands(heap[0]):
            heapq.heappop(heap)
            self.entries -= 1
        return bool(heap)
