"""Seats: the runs that one worker has in hand, each from claim to outcome. The worker fills and frees the seats; the
heart renews their leases."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from rota.domain.lifecycle import Cancelled, Interrupted, Paused, Released
from rota.domain.run import Lease, Note, Run
from rota.engine.context import Context
from rota.engine.slate import Slate
from rota.store import Renewal

if TYPE_CHECKING:
    from opentelemetry.trace import Span

log = logging.getLogger("rota")


class Stop(Enum):
    """Why a handler should stop, and the outcome of its run if it does."""

    CANCEL = Cancelled()
    PAUSE = Paused()
    SHUTDOWN = Interrupted()
    LOST = Released()  # another worker may hold the run: the store refuses any ending from here


class Seat:
    stop: Stop | None = None
    task: asyncio.Task[None] | None = None
    called_at: float | None = None
    given_back = False  # the stopping worker has settled the run without waiting for the handler
    overdue: asyncio.Future[Any] | None = None  # a call that outlives its run
    thread = 0  # in which the handler is called, if it is in one
    span: "Span | None" = None  # of the call, if this program traces

    def __init__(self, run: Run, context: Context, deadline: float) -> None:
        self.run = run
        self.lease = run.lease
        self.args = run.args  # what the handler is called with; a flow's step gets its arguments when it starts
        self.context = context
        self.deadline = deadline  # by the monotonic clock: after it, another worker may hold the run

    def request_stop(self, stop: Stop) -> None:
        """Ask the handler to end: by cancellation on the loop, by `ctx.stopping` in a thread.

        An asyncio task that has not begun must not be cancelled: it would end without leaving its seat.
        """
        if self.stop is None:
            self.stop = stop
            self.context.stop()
            if self.task is not None and self.called_at is not None:
                self.task.cancel()


Notes = Mapping[Lease, tuple[Note, int]]
"""What handlers noted, and the number of each note."""
_STOPS = {Renewal.CANCEL: Stop.CANCEL, Renewal.PAUSE: Stop.PAUSE, Renewal.LOST: Stop.LOST}


class Seats:
    """The seats of one worker. Only the worker's event loop changes them; other threads may read the leases.

    There is no lock, because each run would take it four times. One change of a dict is atomic, and so is `list(dict)`:
    the hash and the comparison of a Lease run no Python code.
    """

    def __init__(self, worker: str, total: int, slate: Slate | None = None) -> None:
        self.worker = worker
        self.total = total
        self.outlived: dict[asyncio.Future[Any], Seat] = {}
        """Calls that outlived their runs and still take a seat."""
        self.on_unrenewed: Callable[[int], None] = lambda count: None
        """Hears how many leases could not be renewed."""
        self._slate = slate
        self._taken: dict[Lease, Seat] = {}
        self._unrecorded: dict[Lease, None] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def __len__(self) -> int:
        return len(self._taken)

    def __iter__(self) -> Iterator[Seat]:
        return iter(list(self._taken.values()))

    def __contains__(self, lease: object) -> bool:
        return lease in self._taken

    @property
    def overdue(self) -> int:
        return len(self.outlived)

    @property
    def free(self) -> int:
        """Seats for more runs; below 0 while handed runs or overdue calls take more seats than there are."""
        return self.total - len(self._taken) - self.overdue

    # -- for the worker --------------------------------------------------------------------------------------------

    def take(self, seat: Seat) -> None:
        """A run is in hand from now on."""
        self._taken[seat.lease] = seat
        if self._slate is not None:  # after the seat: a renewal that began later than this has seen the lease
            self._slate.take(seat.lease, seat.deadline)
        self._empty.clear()

    def extend(self, seat: Seat, deadline: float) -> None:
        """The store has extended the lease of `seat` to at least `deadline`."""
        seat.deadline = max(seat.deadline, deadline)
        if self._slate is not None:
            self._slate.extend(seat.lease, seat.deadline)

    def leave(self, seat: Seat) -> None:
        """The run is no longer in hand. Its lease is renewed until its ending is recorded."""
        del self._taken[seat.lease]
        if not self._taken:
            self._empty.set()

    async def emptied(self, seconds: float | None) -> bool:
        """Wait up to `seconds`, or without an end if None, until no run is in hand; False if there still is one."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    def running(self) -> dict[str, int]:
        """Return how many runs of each task are in hand."""
        return dict(Counter(seat.run.task for seat in self))

    # -- for the settler -------------------------------------------------------------------------------------------

    def record(self, lease: Lease) -> None:
        """The ending of this lease is on its way to the store. Until the store has answered, the lease is renewed:
        else a run that succeeded would start again while its ending waits."""
        self._unrecorded[lease] = None

    def recorded(self, leases: Sequence[Lease]) -> None:
        """The store has answered the endings of these leases, or can never take them: nobody renews them any more."""
        for lease in leases:
            self._unrecorded.pop(lease, None)
            if self._slate is not None:
                self._slate.leave(lease)

    # -- for the heart ---------------------------------------------------------------------------------------------

    def leases(self) -> list[Lease]:
        """Return the leases of the runs in hand; safe from any thread."""
        return list(self._taken)

    def unsettled(self) -> list[Lease]:
        """Return the leases to renew: of the runs in hand, and of the endings that the store has not answered yet. Safe
        from any thread."""
        taken = list(self._taken)  # first: an ending is in `_unrecorded` before its run leaves `_taken`
        return list(dict.fromkeys([*taken, *self._unrecorded]))

    def notes(self) -> Notes:
        """Return what handlers noted and no renewal has carried yet; safe from any thread."""
        mine = (seat for seat in self if seat.stop is not Stop.LOST)
        return {seat.lease: note for seat in mine if (note := seat.context.fresh_note())}

    def unrenewed(self, count: int) -> None:
        self.on_unrenewed(count)

    def renewed(self, leases: Sequence[Lease], answers: Sequence[Renewal], deadline: float, notes: Notes) -> None:
        """A renewal of `leases` has carried `notes`: keep the answers, and stop the handlers that should stop."""
        for lease, (_, number) in notes.items():
            if lease in self._taken:
                self._taken[lease].context.carried(number)
        for lease, answer in zip(leases, answers, strict=True):
            seat = self._taken.get(lease)
            if seat is None:
                continue
            seat.deadline = deadline
            if answer is Renewal.LOST:
                self.unrenewed(1)
                log.warning("%s %s: lease lost (fence %d), stopping its handler", seat.run.task, lease.run, lease.fence)
            if answer in _STOPS:
                seat.request_stop(_STOPS[answer])
