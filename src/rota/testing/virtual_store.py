"""The memory store in virtual time: an idle worker need not poll there, and nothing is ever forgotten."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from rota.domain.policy import FAR
from rota.domain.run import Run
from rota.store import Claim, ClaimRequest, Hint, Retention, Store
from rota.stores.idle import Idle
from rota.stores.memory.book import MemoryBook
from rota.stores.memory.history import History
from rota.stores.memory.store import CAPACITY, MemoryStore


class VirtualBackend:
    """Its hints are never lost: a worker with a free seat sleeps until it is hinted or something becomes due, were it
    for weeks. One without looks every `pause`, as always; and so does everyone while a crashed one's leases stand."""

    url = "memory://"
    poll = FAR

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
        if claim.runs and len(claim.runs) >= request.free:  # what it would have woken for is up to the others now
            self._rouse(besides=request.worker)
        waits = [] if claim.wake is None else [claim.wake]
        if request.free <= 0 or self._orphans():
            waits.append(self._pause)
        if (expiry := self._book.next_expiry()) is not None:
            waits.append(max(0.0, expiry - claim.now))
        return replace(claim, wake=min(waits, default=None))

    def history(self) -> list[Run]:
        """Every run there ever was, in the order of arrival."""
        return list(self._book.runs.values())

    def gone(self, worker: str) -> None:
        """A worker was cut off. It takes no hint, and what it would have woken for is up to the others."""
        self._cut_off.add(worker)
        self._book.wake([worker])
        self._rouse()

    def _orphans(self) -> bool:
        """Are there leases that nobody renews?"""
        return bool(self._cut_off) and any(self._book.runs[id].worker in self._cut_off for id in self._book.leases)

    def _rouse(self, besides: str | None = None) -> None:
        """Every idle worker looks, and sees for itself how long it may sleep now."""
        workers = frozenset(idle.worker for idle in self._book.idle() if idle.worker != besides)
        if workers:
            self._hub.publish(Hint(workers=workers))


class VirtualBook(MemoryBook):
    def __init__(self) -> None:
        super().__init__(CAPACITY)
        self.history = _Everything()

    def idle(self) -> Sequence[Idle]:
        """A worker that sleeps in virtual time has not fallen silent, however long it sleeps."""
        return [replace(idle, seen_at=self.now) for idle in super().idle()]


class _Everything(History):
    def forget(self, retention: Retention, now: float, at_once: int = 0) -> list[str]:
        return []
