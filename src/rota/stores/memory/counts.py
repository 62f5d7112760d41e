"""Counters of the memory store."""

from collections import Counter, defaultdict

from rota.domain.run import Run, State

_QUEUED, _RUNNING, _PAUSED = State.QUEUED, State.RUNNING, State.PAUSED


class TaskCounts:
    """How many runs of one task wait and run. `ready`: those that wait and have no needs."""

    __slots__ = ("keys", "paused", "queued", "ready", "running")

    def __init__(self) -> None:
        self.queued = self.ready = self.running = self.paused = 0
        self.keys: dict[str, int] = {}
        """The running ones by key."""

    def __bool__(self) -> bool:
        return bool(self.queued or self.running or self.paused)


class Counts:
    def __init__(self) -> None:
        self.tasks: defaultdict[str, TaskCounts] = defaultdict(TaskCounts)
        self.suspects: Counter[str] = Counter()
        """Leased runs with losses, by worker."""
        self.limits: Counter[str] = Counter()
        """Leases that count against a named limit, by its row."""

    def add(self, run: Run, by: int = 1) -> None:
        """Count a run; with -1 for `by`, count it no longer."""
        state, counts = run.state, self.tasks[run.task]
        if state is _RUNNING:
            counts.running += by
            if run.key is not None:
                counts.keys[run.key] = counts.keys.get(run.key, 0) + by
            if run.losses and run.worker:
                self.suspects[run.worker] += by
        elif state is _QUEUED:
            counts.queued += by
            if not run.needs:
                counts.ready += by
        elif state is _PAUSED:
            counts.paused += by

    def claimed(self, run: Run) -> None:
        """Count a ready run, which waited until now, as running."""
        counts = self.tasks[run.task]
        counts.queued -= 1
        counts.ready -= 1
        counts.running += 1
        if run.key is not None:
            counts.keys[run.key] = counts.keys.get(run.key, 0) + 1
        if run.losses and run.worker:
            self.suspects[run.worker] += 1

    def ended(self, run: Run) -> None:
        """Count a run, which ran until now, no longer."""
        counts = self.tasks[run.task]
        counts.running -= 1
        if run.key is not None:
            counts.keys[run.key] -= 1
        if run.losses and run.worker:
            self.suspects[run.worker] -= 1

    def forget(self) -> None:
        """Forget the names that nothing is counted for."""
        for name, counts in list(self.tasks.items()):
            counts.keys = {key: n for key, n in counts.keys.items() if n}
            if not counts:
                del self.tasks[name]
        self.suspects, self.limits = +self.suspects, +self.limits
