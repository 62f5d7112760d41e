"""The lanes of runs that have a share: one for each share, and one of all shares.

The lane of all shares says when its first run is due. The shares themselves are in the order of their texts, so that a
claim finds the next share without a look at the others.
"""

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Sequence

from rota.stores.memory.lanes import Entry, Lanes


class SharedLanes:
    """`lane` is the name of the lanes of a task in a queue."""

    def __init__(self, is_current: Callable[[Entry], bool]) -> None:
        self._all = Lanes(is_current)
        self._each = Lanes(is_current)
        self._texts: dict[tuple[str, int], list[str]] = {}

    @property
    def entries(self) -> int:
        return self._all.entries

    def __bool__(self) -> bool:
        return bool(self._all)

    def push(self, lane: str, share: str, entry: Entry, now: float) -> None:
        self._all.push(lane, entry, now)
        self._each.push(_name(lane, share), entry, now)
        texts = self._texts.setdefault((lane, entry[3]), [])
        at = bisect_right(texts, share)
        if not at or texts[at - 1] != share:
            insort(texts, share)

    def heads(self, lanes: Sequence[str], now: float) -> Iterator[tuple[str, int, float]]:
        return self._all.heads(lanes, now)

    def upcoming(self, lanes: Sequence[str], k: int, now: float) -> list[float]:
        return self._all.upcoming(lanes, k, now)

    def due(self, lane: str, share: str, priority: int, now: float) -> Iterator[Entry]:
        return self._each.due([_name(lane, share)], now, (priority,))

    def next_share(self, lane: str, priority: int, after: str, now: float) -> str | None:
        """Return the first share behind `after` that has a due entry. Shares without entries are forgotten here."""
        texts = self._texts.get((lane, priority), [])
        at = bisect_right(texts, after)
        while at < len(texts):
            if self._each.has_due(_name(lane, texts[at]), priority, now):
                return texts[at]
            if self._each.has_later(_name(lane, texts[at])):
                at += 1
            else:
                del texts[at]
        return None

    def prune(self) -> None:
        self._all.prune()
        self._each.prune()
        self._texts = {name: texts for name, texts in self._texts.items() if texts}


def _name(lane: str, share: str) -> str:
    return f"{lane}\x00{share}"
