"""Waiters: handlers that take a seat while they wait for other runs. If all seats are taken so, no run can start."""

import logging
import threading
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager

from rota.domain.run import Lease, Run, State
from rota.engine.seats import Seats

log = logging.getLogger("rota")


class Waiters:
    """The waiting handlers of one worker. Warns once when they take all seats and wait for runs that need a seat."""

    def __init__(self, seats: Seats, tasks: Collection[str]) -> None:
        """`tasks` are those whose runs this worker can call."""
        self._seats = seats
        self._tasks = tasks
        self._lock = threading.Lock()  # plain handlers wait through the portal, on a loop of its own
        self._awaited: dict[Lease, Counter[str]] = {}
        self._warned = False

    @contextmanager
    def waiting(self, seat: Lease, run: str) -> Generator[None]:
        with self._lock:
            self._awaited.setdefault(seat, Counter())[run] += 1
        try:
            yield
        finally:
            with self._lock:
                awaited = self._awaited[seat]
                awaited[run] -= 1
                if not awaited[run]:
                    del awaited[run]
                if not awaited:
                    del self._awaited[seat]

    def judge(self, runs: Sequence[Run], now: float) -> None:
        """Warn if no awaited run can move. `runs` have been awaited for a while, as the store has them `now`."""
        leases = self._seats.leases()
        with self._lock:
            if self._warned or self._seats.free > 0 or any(seat not in self._awaited for seat in leases):
                return
            awaited = {run for seat in leases for run in self._awaited[seat]}
            ours = [run for run in runs if run.id in awaited]
            moving = [run for run in ours if run.state is State.RUNNING and run.worker != self._seats.worker]
            stuck = [run for run in ours if self._needs_a_seat(run, now)]
            if moving or not stuck:
                return
            self._warned = True
        log.warning(
            "worker %s: its handlers hold all %d seats and wait for other runs, which wait for a seat (%s %s and %d "
            "more): nothing moves until another worker takes them. Give the tasks that wait a timeout, raise "
            "concurrency, or let a chain or flow do the waiting",
            self._seats.worker,
            len(leases),
            stuck[0].task,
            stuck[0].id,
            len(stuck) - 1,
        )

    def _needs_a_seat(self, run: Run, now: float) -> bool:
        return run.state is State.QUEUED and not run.needs and run.due_at <= now and run.task in self._tasks
