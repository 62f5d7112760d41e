"""What the demo shows, read from the store. It counts only runs that ended while this demo ran."""

from collections import Counter, deque

from msgspec import Struct

from rota.domain.run import Run, State
from rota.store import Depth, Reads, RunQuery

NEWEST = 200
LEFTOVERS = 500
ENDED_KEPT = 50
DONE_KEPT = 5000
"""How many ids of ended runs are remembered, so that no run counts twice while it is among the newest."""
WINDOW = 10
"""Seconds over which the throughput is averaged."""


class Tally(Struct):
    """The counts of one task since the demo began."""

    queued: int = 0
    running: int = 0
    ended: Counter[State] = Counter()
    retries: int = 0


class Board:
    """The demo's own view of the store, refreshed by `look`."""

    def __init__(self, tasks: list[str]) -> None:
        self.tallies = {task: Tally(ended=Counter()) for task in tasks}
        self.running: list[Run] = []
        self.ended: deque[Run] = deque(maxlen=ENDED_KEPT)
        self.now = 0.0
        self.began: float | None = None
        self._open: dict[str, Run] = {}
        self._done: deque[str] = deque(maxlen=DONE_KEPT)
        self._moments: deque[float] = deque(maxlen=DONE_KEPT)

    async def look(self, store: Reads) -> list[Run]:
        """Read the store and return the runs that have ended since the last look, in the order of their ends."""
        if self.began is None:
            leftovers = await store.runs(RunQuery(state=[State.QUEUED, State.RUNNING], limit=LEFTOVERS))
            self.began = leftovers.now
            self._open = {run.id: run for run in leftovers.runs}
        page = await store.runs(RunQuery(limit=NEWEST))
        known = self._open.keys() | set(self._done)
        fresh = [run for run in page.runs if run.id not in known and run.created_at >= self.began]
        self._open.update((run.id, run) for run in fresh)
        followed = await store.runs(RunQuery(ids=list(self._open)))
        self.now = followed.now
        self._open = {run.id: run for run in followed.runs if not run.state.final}
        ended = sorted((run for run in followed.runs if run.state.final), key=lambda r: r.finished_at or 0.0)
        self._count(ended, (await store.depths()).items)
        return ended

    def _count(self, ended: list[Run], depths: list[Depth]) -> None:
        for run in ended:
            tally = self.tallies.setdefault(run.task, Tally(ended=Counter()))
            tally.ended[run.state] += 1
            tally.retries += run.failures if run.state is not State.FAILED else max(0, run.failures - 1)
            self.ended.appendleft(run)
            self._done.append(run.id)
            self._moments.append(run.finished_at or self.now)
        found = {depth.task: depth for depth in depths}
        for task, tally in self.tallies.items():
            depth = found.get(task) or Depth(task, 0, 0)
            tally.queued, tally.running = depth.queued, depth.running
        held = [run for run in self._open.values() if run.state is State.RUNNING and (run.until or 0.0) > self.now]
        self.running = sorted(held, key=lambda run: run.claimed_at or 0.0)

    def total(self, *states: State) -> int:
        return sum(tally.ended[state] for tally in self.tallies.values() for state in states)

    @property
    def queued(self) -> int:
        return sum(tally.queued for tally in self.tallies.values())

    @property
    def seconds(self) -> float:
        return 0.0 if self.began is None else self.now - self.began

    @property
    def throughput(self) -> float:
        """Ended runs per second, lately."""
        recent = sum(1 for moment in self._moments if moment > self.now - WINDOW)
        return recent / max(1.0, min(WINDOW, self.seconds))

    def per_second(self, count: int) -> list[int]:
        """Ended runs in each of the last whole seconds, oldest first."""
        bins = [0] * count
        for moment in self._moments:
            age = int(self.now) - 1 - int(moment)
            if 0 <= age < count:
                bins[count - 1 - age] += 1
        return bins
