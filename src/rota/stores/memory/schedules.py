"""Schedules in memory: by id, and in a heap by the time at which each is to be offered."""

import heapq

from rota.domain.run import after
from rota.domain.schedule import Schedule
from rota.store import DUE_SCHEDULES, OFFER_AGAIN


class Schedules:
    def __init__(self) -> None:
        self.by_id: dict[str, Schedule] = {}
        self._offer_at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def put(self, schedule: Schedule) -> None:
        self.by_id[schedule.id] = schedule
        self._offer_again_at(schedule.id, None if schedule.paused else schedule.fires_at)

    def drop(self, id: str) -> None:
        self.by_id.pop(id, None)
        self._offer_again_at(id, None)

    def offer(self, now: float) -> list[Schedule]:
        """Return due schedules. Each is offered to one worker at a time."""
        found: list[Schedule] = []
        while len(found) < DUE_SCHEDULES and (at := self.next()) is not None and at <= now:
            found.append(self.by_id[self._heap[0][1]])
            self._offer_again_at(found[-1].id, after(now, OFFER_AGAIN))
        return found

    def next(self) -> float | None:
        """Return the time of the next offer; None if there is none."""
        while self._heap and self._offer_at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _offer_again_at(self, id: str, at: float | None) -> None:
        if at is None:
            self._offer_at.pop(id, None)
        elif self._offer_at.get(id) != at:
            self._offer_at[id] = at
            heapq.heappush(self._heap, (at, id))
        if len(self._heap) > 2 * len(self._offer_at) + 1000:
            self._heap = [(at, id) for id, at in self._offer_at.items()]
            heapq.heapify(self._heap)
