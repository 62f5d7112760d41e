"""The watchdog: logs what blocks the event loop, while the loop is blocked.

The loop sets a time mark every half threshold; a thread checks whether the mark is late. A blockage counts from the
moment at which the mark was due, so that its length is never exaggerated: a blockage of one and a half thresholds is
always logged, a blockage shorter than the threshold never.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from typing import NamedTuple

log = logging.getLogger("rota")

FRAMES = 15


class Blockage(NamedTuple):
    """`stack`: empty if the thread could not look."""

    seconds: float
    stack: str
    ended_at: float

    @property
    def over_for(self) -> float:
        return time.monotonic() - self.ended_at


class Watchdog:
    def __init__(self, threshold: float = 1.0) -> None:
        self._threshold = threshold
        self._period = threshold / 2
        self._due = 0.0  # by the monotonic clock: when the loop should set the mark next
        self._loop_thread = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.TimerHandle | None = None
        self._stopped = threading.Event()
        self._seen = (0.0, "")  # the mark that was late, and the stack of the loop at that time
        self.last: Blockage | None = None
        """What blocked the loop last, since it turns again."""

    def start(self) -> None:
        """Watch the running event loop."""
        self._loop_thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        self._schedule(self._loop)
        threading.Thread(target=self._watch, name="rota-watchdog", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()
        if self._next is not None:
            self._next.cancel()

    @property
    def blocked_for(self) -> float:
        """Seconds for which the loop has not turned, 0.0 while it turns; safe from any thread."""
        late = time.monotonic() - self._due
        return late if self._next is not None and not self._stopped.is_set() and late >= self._threshold else 0.0

    # -- on the loop -----------------------------------------------------------------------------------------------

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = time.monotonic() + self._period
        self._next = loop.call_later(self._period, self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the mark. Logs also what the thread could not see: a call that held the GIL, or a suspended process."""
        total, (due, stack) = self.blocked_for, self._seen
        if total:
            self.last = Blockage(total, stack if due == self._due else "", time.monotonic())
        self._schedule(loop)
        if total:
            log.warning("the event loop turns again: it was blocked for %.1f s", total)

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        logged = 0.0  # the mark whose lateness has been logged
        asleep = time.monotonic()
        while not self._stopped.wait(self._period):
            if self._loop is not None and self._loop.is_closed():
                return  # it is not blocked, and never turns again
            awake = time.monotonic()
            overslept = awake - asleep - self._period > self._period
            asleep = awake
            late, due = self.blocked_for, self._due
            if late and due != logged and not overslept:  # a thread that was late itself gives the loop one more period
                logged = due
                self._seen = due, self._stack()
                log.warning("the event loop has been blocked for %.1f s, by:\n%s", late, self._seen[1])

    def _stack(self) -> str:
        """Return the innermost frames of the loop's thread now."""
        frame = sys._current_frames().get(self._loop_thread)  # pyright: ignore[reportPrivateUsage]
        return "(its thread has ended)" if frame is None else "".join(traceback.format_stack(frame, FRAMES)).rstrip()
