"""The heart: renews all leases from a thread of its own, so that a blocked event loop does not lose them.

The heart has its own event loop and its own open store. It tells the main loop what the store answered, and it watches
the main loop: a loop that has been silent for too long loses its leases.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from rota.domain.run import Lease
from rota.domain.text import plural
from rota.domain.tuning import Tuning
from rota.engine.seats import Notes
from rota.engine.slate import Slate
from rota.engine.world import REAL, World
from rota.errors import StoreError
from rota.store import Backend, Renewal, Store
from rota.threads import AwaitedThread

log = logging.getLogger("rota")

RETRY = 1.0
"""Seconds after which a failed renewal is tried again."""
NOTES_EVERY = 0.5
"""Seconds between renewals that only carry notes."""
DRAIN_LEASE = 10.0
"""Seconds for which the leases of a worker that stops are renewed: whoever stops it may kill it at any moment."""


class Leases(Protocol):
    """What a heart renews: the seats of a worker, or the lease of a caller."""

    worker: str

    def unsettled(self) -> list[Lease]:
        """Return the leases to renew; called from the thread of the heart, as is `notes`."""
        ...

    def notes(self) -> Notes: ...

    def renewed(self, leases: Sequence[Lease], answers: Sequence[Renewal], deadline: float, notes: Notes) -> None:
        """Take the answers to a renewal; called on the main loop."""
        ...

    def unrenewed(self, count: int) -> None:
        """The store has not answered the renewal of so many leases; called on the main loop."""
        ...


class Heart:
    """The heart of one worker. `slate` is where the renewer sees that the heart beats."""

    def __init__(
        self, backend: Backend, seats: Leases, tuning: Tuning, world: World = REAL, slate: Slate | None = None
    ) -> None:
        self._backend = backend
        self._seats = seats
        self._tuning = tuning
        self._clock = world.monotonic
        self._main = asyncio.get_running_loop()
        self._asked_at: float | None = None  # when the main loop got the oldest probe that it has not answered
        self._stopped = threading.Event()
        self._beat_at = 0.0
        self._slate = slate
        self._soon: asyncio.TimerHandle | None = None
        self._own: asyncio.AbstractEventLoop | None = None
        self._now: asyncio.Event | None = None
        self._lease = tuning.lease
        self._every = tuning.renew_every
        self._when_empty: float | None = tuning.renew_every  # seconds to the next beat while there is no lease
        self._thread = AwaitedThread(self._live, f"rota-heart-{seats.worker[:8]}")

    @property
    def silent_for(self) -> float:
        """Seconds for which the main loop has owed an answer to a probe. Beats may be hours apart: a loop that has
        answered the last probe is not silent."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else self._clock() - asked_at

    def start(self) -> None:
        self._thread.start()

    def beat(self) -> None:
        """Renew now; safe from any thread."""
        if self._own is not None and self._now is not None:
            with suppress(RuntimeError):  # the heart's loop was closed just now: the next loop begins with a renewal
                self._own.call_soon_threadsafe(self._now.set)

    def beat_soon(self) -> None:
        """Renew within NOTES_EVERY: a handler left a note. Many notes share one renewal. Safe from any thread."""
        if self._own is not None:
            with suppress(RuntimeError):
                self._own.call_soon_threadsafe(self._schedule)

    def filled(self) -> None:
        """The first seat was taken."""

    def drain(self) -> None:
        """The worker stops: from now on lease for DRAIN_LEASE at most, so that its runs do not wait long for another
        worker if it is killed."""
        self._lease = min(self._lease, DRAIN_LEASE)
        self._every = min(self._every, self._lease / 3)
        if self._slate is not None:
            self._slate.shorten(self._lease)
        self.beat()

    def _schedule(self) -> None:
        if self._soon is None and self._own is not None:
            self._soon = self._own.call_later(max(0.0, self._beat_at + NOTES_EVERY - self._clock()), self._due)

    def _due(self) -> None:
        self._soon = None
        if self._now is not None:
            self._now.set()

    async def stop(self) -> None:
        self.abandon()
        await self._thread.ended()

    def abandon(self) -> None:
        """End without another renewal, and do not wait for the end."""
        self._stopped.set()
        self.beat()

    def _live(self) -> None:
        while not self._stopped.is_set():
            try:
                asyncio.run(self._beat_for_ever())
            except Exception:
                if self._stopped.is_set():
                    return  # at the end of a process, asyncio has no thread left to end the loop's executor
                log.exception("lease renewal failed, next try in %.0f s", RETRY)
                self._stopped.wait(RETRY)

    async def _beat_for_ever(self) -> None:
        self._own, self._now, self._soon = asyncio.get_running_loop(), asyncio.Event(), None
        async with self._backend.open() as store:
            while not self._stopped.is_set():
                pause = await self._beat(store)
                try:
                    async with asyncio.timeout(pause):
                        await self._now.wait()
                except TimeoutError:
                    pass
                self._now.clear()

    async def _beat(self, store: Store) -> float | None:
        """Renew all leases once. Returns the seconds until the next beat; None: when `beat` is called."""
        silent = self.silent_for
        give_up = silent > self._tuning.silence
        began = self._clock()  # before the leases are read: the renewal covers every run that is in hand by now
        if self._slate is not None:
            self._slate.beat(began, give_up)
        self._probe()  # after the slate: an answer that comes now takes `give_up` back
        leases = self._seats.unsettled()
        if not leases:
            return self._when_empty
        if give_up:
            log.error("the event loop has not answered for %.0f s: its leases are no longer renewed", silent)
            return self._every
        lease = self._lease
        deadline = began + lease
        self._beat_at = began
        notes = self._seats.notes()
        try:
            reply = await store.renew(leases, lease, {at.run: note for at, (note, _) in notes.items()})
        except StoreError as error:
            log.warning("cannot renew %s, next try in %.0f s: %s", plural(len(leases), "lease"), RETRY, error)
            self._call_main(lambda: self._seats.unrenewed(len(leases)))
            return min(RETRY, self._every)
        if self._slate is not None:
            self._slate.renewed(began)
        self._call_main(lambda: self._seats.renewed(leases, reply.items, deadline, notes))
        return self._every

    def _probe(self) -> None:
        if self._asked_at is None:
            self._asked_at = self._clock()
        self._call_main(self._answer)

    def _answer(self) -> None:
        self._asked_at = None
        if self._slate is not None:
            self._slate.beat(self._clock())

    def _call_main(self, function: Callable[[], None]) -> None:
        """Call `function` on the main loop."""
        try:
            self._main.call_soon_threadsafe(function)
        except RuntimeError:  # the main loop is closed
            self._stopped.set()


class LoopHeart(Heart):
    """A heart without a thread, on the engine's own loop: for a world in which nothing blocks. It does not beat while
    there is no lease, so that an idle engine costs nothing."""

    def __init__(
        self, backend: Backend, seats: Leases, tuning: Tuning, world: World = REAL, slate: Slate | None = None
    ) -> None:
        super().__init__(backend, seats, tuning, world, slate)
        self._when_empty = None
        self._life: asyncio.Task[None] | None = None

    def filled(self) -> None:
        self.beat()

    @property
    def silent_for(self) -> float:
        return 0.0

    def start(self) -> None:
        self._life = asyncio.create_task(self._live_here(), name="rota heart")

    async def stop(self) -> None:
        self._stopped.set()
        self.beat()
        if self._life is not None:
            await asyncio.wait((self._life,))

    async def _live_here(self) -> None:
        while not self._stopped.is_set():
            try:
                await self._beat_for_ever()
            except Exception:
                log.exception("lease renewal failed, next try in %.0f s", RETRY)
                await asyncio.sleep(RETRY)
