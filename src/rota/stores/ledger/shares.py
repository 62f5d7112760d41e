"""Turns: the waiting runs of a task that have a share start by weighted round robin over their shares.

The shares of a task, queue and priority are in the order of their texts. A share whose turn it is gets as many runs as
its weight says; then it is the turn of the next share that has a due run. So the store remembers one share and one
number for a task, queue and priority, however many shares there are, and nothing when a share has no more runs.
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from rota.stores.book import Book, Candidate, Lane, Turn


class Turns:
    """The turns during one claim."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._turns: dict[tuple[str, str, int], Turn] = {}
        self._changed: set[tuple[str, str, int]] = set()

    def walk(self, lanes: Sequence[Lane], suspects: bool) -> Iterator[Candidate]:
        """Yield the due runs of the lanes of one task. Runs without a share come in the order of their due times. Runs
        with a share come where the oldest of them would come, among runs of other queues and of other tasks."""
        for _, level in groupby(sorted(lanes, key=lambda lane: -lane.priority), key=lambda lane: lane.priority):
            by_queue: dict[tuple[str, bool], list[Lane]] = {}
            for lane in level:
                by_queue.setdefault((lane.queue, bool(lane.share)), []).append(lane)
            streams = [
                self._in_turn(group, suspects) if shared else self._book.walk(group, suspects)
                for (_, shared), group in by_queue.items()
            ]
            yield from heapq.merge(*streams)

    def take(self, run: Candidate) -> None:
        """A claim takes `run`, which has a share: count it for that share."""
        name = run.task, run.queue, -run.rank
        turn = self._turn(name)
        more = turn.share == run.share and turn.got < self._weight(run.task, run.share)
        self._turns[name] = Turn(run.share, turn.got + 1 if more else 1)
        self._changed.add(name)

    def keep(self) -> None:
        for name in self._changed:
            self._book.put_turn(*name, self._turns[name])

    def _in_turn(self, lanes: Sequence[Lane], suspects: bool) -> Iterator[Candidate]:
        """Yield the runs of one task, queue and priority. Each is chosen after the one before was taken or parked."""
        name, oldest = (lanes[0].task, lanes[0].queue, lanes[0].priority), min(lane.head for lane in lanes)
        runs = {lane.share: self._book.walk([lane], suspects) for lane in lanes}
        shares = sorted(runs)
        while shares:
            share = self._next(name, shares)
            run = next(runs[share], None)
            if run is None:
                shares.remove(share)
            else:
                yield replace(run, due_at=oldest)

    def _next(self, name: tuple[str, str, int], shares: Sequence[str]) -> str:
        turn = self._turn(name)
        if turn.share in shares and turn.got < self._weight(name[0], turn.share):
            return turn.share
        return shares[bisect_right(shares, turn.share) % len(shares)]

    def _turn(self, name: tuple[str, str, int]) -> Turn:
        if name not in self._turns:
            self._turns[name] = self._book.turn(*name)
        return self._turns[name]

    def _weight(self, task: str, share: str) -> int:
        spec = self._book.spec(task)
        return spec.share.weight(share) if spec and spec.share else 1
