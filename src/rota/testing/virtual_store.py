"""The memory store in virtual time: an idle worker does not poll, and the store forgets no run."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from msgspec.structs import replace

from rota.domain.policy import FAR
from rota.domain.run import Run
from rota.domain.spec import TaskSpec
from rota.store import ALL_ROWS, Claim, ClaimRequest, Hint, Reply, Retention, RowQuery, Store, WorkerSeen
from rota.stores.idle import Idle
from rota.stores.memory.book import MemoryBook
from rota.stores.memory.history import History
from rota.stores.memory.store import CAPACITY, MemoryStore

T = TypeVar("T")


class VirtualBackend:
    """Hints are never lost here, so a worker with a free seat sleeps until a hint or a due time, even for weeks. One
    without a free seat claims every `pause` seconds; so does every worker while a crashed worker has leases."""

    url = "memory://"
    poll = FAR
    submits_within = None

    def __init__(self, clock: Callable[[], float], pause: float) -> None:
        self.skew = 0.0
        self.store = VirtualStore(VirtualBook(), lambda: clock() + self.skew, pause)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Store]:
        yield self.store


class VirtualStore(MemoryStore):
    def __init__(self, book: MemoryBook, clock: Callable[[], float], pause: float) -> None:
        super().__init__(book, clock)
        self._pause = pause
        self._cut_off: set[str] = set()
        self.claims = 0

    async def claim(self, request: ClaimRequest) -> Claim:
        self.claims += 1
        claim = await super().claim(request)
        if claim.runs and len(claim.runs) >= request.free:  # the other workers have to wake for the next due time
            self._rouse(besides=request.worker)
        waits = [] if claim.wake is None else [claim.wake]
        if request.free <= 0 or self._orphans():
            waits.append(self._pause)
        if (expiry := self._book.next_expiry()) is not None:
            waits.append(max(0.0, expiry - claim.now))
        return replace(claim, wake=min(waits, default=None))

    async def rows(self, kind: type[T], query: RowQuery = ALL_ROWS) -> Reply[T]:
        if kind is WorkerSeen:
            seen = self._book.workers
            seen.update({idle.worker: replace(seen[idle.worker], seen_at=idle.seen_at) for idle in self._book.idle()})
        return await super().rows(kind, query)

    def history(self) -> list[Run]:
        """Return all runs that the store ever had, in the order of arrival."""
        return list(self._book.runs.values())

    def gone(self, worker: str) -> None:
        """Note that a worker was cut off: it takes no hints, and the other workers wake for the next due time."""
        self._cut_off.add(worker)
        self._book.wake([worker])
        self._rouse()

    def _orphans(self) -> bool:
        """Return whether a worker that was cut off still has leases."""
        return bool(self._cut_off) and any(self._book.runs[id].worker in self._cut_off for id in self._book.leases)

    def _rouse(self, besides: str | None = None) -> None:
        """Wake every idle worker except `besides`, so that each claims and computes anew how long it may sleep."""
        workers = frozenset(idle.worker for idle in self._book.idle() if idle.worker != besides)
        if workers:
            self._hub.publish(Hint(workers=workers))


class VirtualBook(MemoryBook):
    def __init__(self) -> None:
        super().__init__(CAPACITY)
        self.history = _Everything()

    def idle(self) -> Sequence[Idle]:
        """Return the idle workers, all seen just now: a worker that sleeps in virtual time is never taken for
        silent."""
        return [replace(idle, seen_at=self.now) for idle in super().idle()]


class _Everything(History):
    def forget(
        self,
        retention: Retention,
        now: float,
        specs: Mapping[str, TaskSpec],
        is_kept: Callable[[str], bool] | None = None,
    ) -> list[str]:
        return []
