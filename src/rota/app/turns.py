"""Turns: one at a time, whatever thread or event loop the callers are on."""

import asyncio
import threading
from collections import deque
from concurrent.futures import Future


class Turns:
    """`async with turns:` waits for those who came before. An `asyncio.Lock` belongs to one event loop only."""

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
            if not turn.cancelled():  # the turn had come already: it goes to the next
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
