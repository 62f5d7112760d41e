"""Turns: the waiting runs of a task that have a share start by weighted round robin over their shares.

The shares of a task, queue and priority are in the order of their texts. A share whose turn it is gets as many runs as
its weight says; then it is the turn of the next share that has a due run. So the store remembers one share and one
number for a task, queue and priority, however many shares there are, and nothing when a share has no more runs.
"""

import heapq
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
            by_queue: dict[str, list[Lane]] = {}
            for lane in level:
                by_queue.setdefault(lane.queue, []).append(lane)
            streams = [
                self._in_turn(lane, suspects) if lane.shared else self._book.walk([lane], suspects)
                for lanes in by_queue.values()
                for lane in lanes
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

    def _in_turn(self, lane: Lane, suspects: bool) -> Iterator[Candidate]:
        """Yield the runs of all shares of a task, queue and priority. Each is chosen after the one before was taken or
        parked. A share is looked for when the shares before it have had their turn, so a claim reads no more shares
        than it fills seats."""
        name = lane.task, lane.queue, lane.priority
        ring: list[tuple[str, Iterator[Candidate]]] = []
        more, at = self._from_turn(name, lane), 0
        while True:
            if at == len(ring):
                share = next(more, None)
                if share is not None:
                    ring.append((share, self._book.walk([replace(lane, share=share)], suspects)))
                elif ring:
                    at = 0
                else:
                    return
            share, runs = ring[at]
            run = next(runs, None)
            if run is None:
                del ring[at]
                continue
            before = self._turn(name)
            yield replace(run, due_at=lane.head)
            turn = self._turn(name)
            at += turn is not before and turn.got >= self._weight(lane.task, share)

    def _from_turn(self, name: tuple[str, str, int], lane: Lane) -> Iterator[str]:
        """Yield each share with due runs: first the one whose turn it is, if its turn is not over, then those behind
        it, in a ring."""
        turn = self._turn(name)
        over = turn.got >= self._weight(lane.task, turn.share)
        if turn.share and not over:
            yield turn.share
        share = self._book.next_share(lane, turn.share)
        while share is not None:
            yield share
            share = self._book.next_share(lane, share)
        share = self._book.next_share(lane, "") if turn.share else None
        while share is not None and share < turn.share:
            yield share
            share = self._book.next_share(lane, share)
        if turn.share and over:
            yield turn.share

    def _turn(self, name: tuple[str, str, int]) -> Turn:
        if name not in self._turns:
            self._turns[name] = self._book.turn(*name)
        return self._turns[name]

    def _weight(self, task: str, share: str) -> int:
        spec = self._book.spec(task)
        return spec.share.weight(share) if spec and spec.share else 1
