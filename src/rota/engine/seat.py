"""Seat: a run in a worker, from claim to outcome."""

import asyncio
from enum import Enum
from typing import Any

from rota.domain.lifecycle import Cancelled, Interrupted, Paused, Released
from rota.domain.run import Run
from rota.engine.context import Context


class Stop(Enum):
    """Why a handler should stop, and the outcome of its run if it does."""

    CANCEL = Cancelled()
    PAUSE = Paused()
    SHUTDOWN = Interrupted()
    LOST = Released()  # another worker may hold the run: the store refuses any ending from here


class Seat:
    def __init__(self, run: Run, context: Context, deadline: float) -> None:
        self.run = run
        self.lease = run.lease
        self.args = run.args  # what the handler is called with; a flow's step gets its arguments when it starts
        self.context = context
        self.deadline = deadline  # by the monotonic clock: after it, another worker may hold the run
        self.stop: Stop | None = None
        self.task: asyncio.Task[None] | None = None
        self.called_at: float | None = None
        self.given_back = False  # the stopping worker has settled the run without waiting for the handler
        self.overdue: asyncio.Future[Any] | None = None  # a call that outlives its run

    def request_stop(self, stop: Stop) -> None:
        """Ask the handler to end: by cancellation on the loop, by `ctx.stopping` in a thread.

        An asyncio task that has not begun must not be cancelled: it would end without leaving its seat.
        """
        if self.stop is None:
            self.stop = stop
            self.context.stop()
            if self.task is not None and self.called_at is not None:
                self.task.cancel()
