"""The state of the memory store as a value: each step of a walk restores a store from its state."""

from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

from rota.domain.guards import Mark
from rota.domain.run import Lease, Run
from rota.domain.schedule import Schedule
from rota.domain.spec import TaskSpec
from rota.stores.memory.book import MemoryBook
from rota.stores.memory.schedules import Schedules
from rota.stores.memory.store import MemoryStore

T = TypeVar("T")
CAPACITY = 1000


class Frozen(NamedTuple):
    """All data of a book that a verb reads. Decisions, hints and statistics are left out."""

    now: float
    runs: tuple[Run, ...]
    offers: tuple[tuple[str, float], ...]
    claims: tuple[tuple[str, int], ...]
    taken: tuple[tuple[str, int, tuple[Lease, ...]], ...]
    schedules: tuple[Schedule, ...]
    looks: tuple[tuple[str, float], ...]
    marks: tuple[tuple[tuple[str, str], Mark], ...]
    hash: int = 0

    def hashed(self) -> "Frozen":
        return self._replace(hash=hash(self.key))

    @property
    def key(self) -> tuple[object, ...]:
        return (
            self.now,
            tuple([_run_key(run) for run in self.runs]),
            self.offers,
            self.claims,
            self.taken,
            tuple([(schedule.version, schedule.next_at, schedule.paused) for schedule in self.schedules]),
            self.looks,
            self.marks,
        )


NOTHING = Frozen(0.0, (), (), (), (), (), (), ()).hashed()


def _run_key(run: Run) -> tuple[object, ...]:
    return (
        *(run.id, run.state, run.due_at, run.expires_at, run.fence, run.failures, run.losses, run.worker, run.until),
        *(run.cancel_requested, run.pause_requested, run.parked, run.reason, run.needs, run.awaited, run.body),
        tuple([attempt.outcome for attempt in run.attempts]),
    )


class WalkedSchedules(Schedules):
    def looks(self) -> tuple[tuple[str, float], ...]:
        return tuple(self._offer_at.items())

    def look(self, id: str, at: float) -> None:
        self._offer_again_at(id, at)


class WalkedBook(MemoryBook):
    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(CAPACITY)
        self.schedules: WalkedSchedules = WalkedSchedules()
        self.specs = {spec.name: spec}

    def freeze(self) -> Frozen:
        return Frozen(
            self.now,
            tuple(self.runs.values()),
            tuple(sorted(self.leases.items())),
            tuple(sorted(self._claims.items())),
            tuple([(worker, n, tuple(leases)) for worker, (n, leases) in sorted(self._taken.items())]),
            tuple(self.schedules.by_id.values()),
            self.schedules.looks(),
            tuple(sorted(self.marks.items())),
        ).hashed()

    def thaw(self, frozen: Frozen) -> "WalkedBook":
        """Fill this empty book with a frozen state."""
        self.now = frozen.now
        for place, run in enumerate(frozen.runs):
            self.order[run.id] = place
            self.save(run)
            if run.needs:
                self.wait_for(run.id, run.needs)
        self._arrived = len(frozen.runs)
        self.leases.update(frozen.offers)
        self._claims = dict(frozen.claims)
        self._taken = {worker: (n, list(leases)) for worker, n, leases in frozen.taken}
        for schedule in frozen.schedules:
            self.schedules.put(schedule)
        for id, at in frozen.looks:
            self.schedules.look(id, at)
        self.marks = dict(frozen.marks)
        return self


class WalkedStore(MemoryStore):
    """A memory store that can continue from any state, and that is called without an event loop."""

    def __init__(self, spec: TaskSpec) -> None:
        super().__init__(WalkedBook(spec), lambda: self._book.now)
        self.spec = spec

    def turn_to(self, frozen: Frozen, now: float) -> WalkedBook:
        """Restore the state `frozen` at the time `now`."""
        self._book = book = WalkedBook(self.spec).thaw(frozen)
        book.now = now
        return book

    def run_sync(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a verb to its end. The verbs of the memory store never wait."""
        try:
            coroutine.send(None)
        except StopIteration as done:
            answer: T = done.value
            return answer
        coroutine.close()
        raise AssertionError("a verb of the memory store waited")
