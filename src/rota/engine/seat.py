"""Seat: a run in the hands of this worker, from claim to outcome."""

import asyncio
from enum import Enum
from typing import Any

from rota.domain.lifecycle import Cancelled, Interrupted, Paused, Released
from rota.domain.run import Run
from rota.engine.context import Context


class Stop(Enum):
    """Why a seat was told to stop, and what that makes of its run."""

    CANCEL = Cancelled()
    PAUSE = Paused()
    SHUTDOWN = Interrupted()
    LOST = Released()  # no longer ours: the store will refuse whatever we say


class Seat:
    def __init__(self, run: Run, context: Context, deadline: float) -> None:
        self.run = run
        self.lease = run.lease
        self.args = run.args  # what the handler is called with: of a step, known only when it starts
        self.context = context
        self.deadline = deadline  # by our monotonic clock: after it, the lease may be another's
        self.stop: Stop | None = None
        self.task: asyncio.Task[None] | None = None
        self.called_at: float | None = None
        self.given_back = False  # recorded without its handler, by a worker that stops
        self.overdue: asyncio.Future[Any] | None = None  # a call that outlives its run

    def tell(self, stop: Stop) -> None:
        """Ask the handler to end: by cancellation on the loop, by `ctx.stopping` in a thread.

        A task that has not begun must not be cancelled: it would end without ever leaving its seat.
        """
        if self.stop is None:
            self.stop = stop
            self.context.stop()
            if self.task is not None and self.called_at is not None:
                self.task.cancel()
