"""AnyLoopLock: a lock for callers on any thread and any event loop."""

import asyncio
import threading
from collections import deque
from concurrent.futures import Future


class AnyLoopLock:
    """`async with lock:` waits for those who came first. An `asyncio.Lock` belongs to a single event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[Future[None]] = deque()

    async def __aenter__(self) -> None:
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            turn: Future[None] = Future()
            self._waiting.append(turn)
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            if not turn.cancelled():  # the turn had been granted already: grant it to the next caller
                self._pass_on()
            raise

    async def __aexit__(self, *error: object) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        with self._lock:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._taken = False
