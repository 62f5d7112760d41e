"""A due index: due entries by lane and priority, later entries in one heap per lane.

Entries are removed lazily: `is_current(entry)` says whether the run of an entry still waits at that place.
"""

import heapq
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from itertools import groupby, islice

from rota.domain.run import DEFAULT_QUEUE

Entry = tuple[float, int, str, int]
"""(due_at, order of arrival, run id, priority)"""
Check = Callable[[Entry], bool]


class DueEntries:
    """The due entries of one lane and priority, in order. Most entries become due in their order: they are in a deque.
    Only those that come late, because they waited elsewhere before, are in a heap beside it."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.in_order = deque(entries)
        self.late: list[Entry] = []

    def __len__(self) -> int:
        return len(self.in_order) + len(self.late)

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries in order."""
        return heapq.merge(self.in_order, _in_order(self.late)) if self.late else iter(self.in_order)

    def push(self, entry: Entry) -> None:
        if not self.in_order or entry >= self.in_order[-1]:
            self.in_order.append(entry)
        else:
            heapq.heappush(self.late, entry)

    def head(self, is_current: Check) -> Entry | None:
        """Return the first current entry. Those before it are removed."""
        in_order, late = self.in_order, self.late
        while in_order and not is_current(in_order[0]):
            in_order.popleft()
        while late and not is_current(late[0]):
            heapq.heappop(late)
        if late and (not in_order or late[0] < in_order[0]):
            return late[0]
        return in_order[0] if in_order else None

    def current(self, is_current: Check) -> Iterator[Entry]:
        """Yield the current entries in order, each once."""
        last: Entry | None = None
        for entry in self:
            if entry != last and is_current(entry):
                yield entry
            last = entry


class Lanes:
    def __init__(self, is_current: Check) -> None:
        self._due: dict[str, dict[int, DueEntries]] = {}
        self._later: dict[str, list[Entry]] = {}
        self._is_current = is_current

    @property
    def entries(self) -> int:
        """How many entries there are, with those that are not current."""
        due = sum(len(level) for levels in self._due.values() for level in levels.values())
        return due + sum(map(len, self._later.values()))

    def __bool__(self) -> bool:
        return bool(self._due) or bool(self._later)

    def push(self, lane: str, entry: Entry, now: float) -> None:
        """Add an entry: to the due ones, or to the later ones, from which it moves when the lane is read."""
        if entry[0] <= now:
            self._push_due(lane, entry)
        else:
            heapq.heappush(self._later.setdefault(lane, []), entry)

    def heads(self, lanes: Sequence[str], now: float) -> Iterator[tuple[str, int, float]]:
        """Yield each lane and priority that has due entries, with the due time of the first."""
        for lane in lanes:
            for priority, level in self._ripened(lane, now).items():
                if (head := level.head(self._is_current)) is not None:
                    yield lane, priority, head[0]

    def due(self, lanes: Sequence[str], now: float, wanted: Container[int] | None = None) -> Iterator[Entry]:
        """Yield the due entries of these priorities, or of all, by priority and then by due time."""
        levels: dict[int, list[Iterator[Entry]]] = {}
        for lane in lanes:
            for priority, level in self._ripened(lane, now).items():
                if (wanted is None or priority in wanted) and level.head(self._is_current) is not None:
                    levels.setdefault(priority, []).append(level.current(self._is_current))
        for priority in sorted(levels, reverse=True):
            found = levels[priority]
            yield from heapq.merge(*found) if len(found) > 1 else found[0]

    def upcoming(self, lanes: Sequence[str], k: int, now: float) -> list[float]:
        """Return the first `k` due times after `now`."""
        found: list[float] = []
        for lane in lanes:
            self._ripened(lane, now)
            once = (entry for entry, _ in groupby(_in_order(self._later.get(lane, []))))
            found.extend(islice((entry[0] for entry in once if self._is_current(entry)), k))
        return heapq.nsmallest(k, found)

    def has_due(self, lane: str, priority: int, now: float) -> bool:
        level = self._ripened(lane, now).get(priority)
        return level is not None and level.head(self._is_current) is not None

    def has_later(self, lane: str) -> bool:
        return bool(self._later.get(lane))

    def prune(self) -> None:
        """Remove every entry that is not current."""
        self._due = {
            lane: left
            for lane, levels in self._due.items()
            if (left := {p: DueEntries(kept) for p, level in levels.items() if (kept := self._kept(level))})
        }
        self._later = {lane: kept for lane, heap in self._later.items() if (kept := self._kept(heap))}

    def _kept(self, entries: "DueEntries | list[Entry]") -> list[Entry]:
        """Return the current entries in order, which is a heap too, each once."""
        return sorted({entry for entry in entries if self._is_current(entry)})

    def _push_due(self, lane: str, entry: Entry) -> None:
        levels = self._due.get(lane)
        if levels is None:
            levels = self._due[lane] = {}
        level = levels.get(entry[3])
        if level is None:
            level = levels[entry[3]] = DueEntries()
        level.push(entry)

    def _ripened(self, lane: str, now: float) -> dict[int, DueEntries]:
        """Move entries that have become due to the due ones of the lane. Return those by priority."""
        later = self._later.get(lane)
        while later and later[0][0] <= now:
            self._push_due(lane, heapq.heappop(later))
        return self._due.get(lane, {})


def _in_order(heap: list[Entry]) -> Iterator[Entry]:
    """Yield the entries of a heap, smallest first, without sorting it: a child is never less than its parent."""
    frontier: list[tuple[Entry, int]] = [(heap[0], 0)] if heap else []
    while frontier:
        entry, at = heapq.heappop(frontier)
        yield entry
        for child in (2 * at + 1, 2 * at + 2):
            if child < len(heap):
                heapq.heappush(frontier, (heap[child], child))


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
