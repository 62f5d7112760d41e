"""Stalls: where calls are that do not end, and what blocked the event loop lately. For people who look at a worker."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from itertools import dropwhile
from pathlib import Path
from types import CoroutineType, FrameType
from typing import cast

from rota.engine.seats import Seat, Seats
from rota.engine.watchdog import FRAMES, Watchdog
from rota.store import Stall

MOST = 5
"""Calls in a report."""
LONGEST = 4_000
"""Characters of a stack. Its end says where the program is."""
AROUND = (str(Path(__file__).parent), threading.__file__)
"""The code that calls handlers."""
LATELY = 900.0
"""Seconds for which a blockage that is over is told."""


class Stalls:
    def __init__(self, seats: Seats, clock: Callable[[], float]) -> None:
        self._seats = seats
        self._clock = clock
        self.watchdog: Watchdog | None = None

    def now(self) -> tuple[Stall, ...]:
        return (*self._calls(), *self._blockage())

    def _calls(self) -> Iterator[Stall]:
        for call, seat in list(self._seats.outlived.items())[:MOST]:
            since = self._clock() - (seat.called_at or self._clock())
            yield Stall("call", round(since, 1), _stack(call, seat)[-LONGEST:], seat.run.task, seat.run.id)

    def _blockage(self) -> Iterator[Stall]:
        last = None if self.watchdog is None else self.watchdog.last
        if last is not None and last.over_for < LATELY:
            yield Stall("loop", round(last.seconds, 1), last.stack[-LONGEST:], over_for=round(last.over_for, 1))


def _stack(call: "asyncio.Future[object]", seat: Seat) -> str:
    """Return where a call is: on the loop, or in a thread that may have ended since."""
    if isinstance(call, asyncio.Task):
        return _shown(list(_awaiting(call.get_coro()))[-FRAMES:])
    frame = sys._current_frames().get(seat.thread)  # pyright: ignore[reportPrivateUsage]
    return "" if frame is None else _shown(list(traceback.walk_stack(frame))[:FRAMES][::-1])


def _awaiting(coroutine: object) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames of a suspended coroutine and of those that it awaits."""
    while isinstance(coroutine, CoroutineType) and coroutine.cr_frame is not None:
        yield coroutine.cr_frame, coroutine.cr_frame.f_lineno
        coroutine = cast("object", coroutine.cr_await)


def _shown(frames: list[tuple[FrameType, int]]) -> str:
    """Return frames as a traceback has them, without those of rota around the handler."""
    inner = list(dropwhile(lambda each: each[0].f_code.co_filename.startswith(AROUND), frames))
    return "".join(traceback.StackSummary.extract(iter(inner or frames)).format()).rstrip()
