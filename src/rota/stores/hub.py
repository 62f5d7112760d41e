"""Hints inside one process: from any thread to every subscribed event loop."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress

from rota.forks import PerProcess
from rota.store import Hint

BACKLOG = 1000
"""A subscriber with this many unread hints gets one resync in their place."""


class Hub:
    """The subscribers of this process. A forked child starts without subscribers."""

    def __init__(self) -> None:
        self._here = PerProcess(_Subscribers)

    @property
    def watched(self) -> bool:
        return bool(self._here.get().inboxes)

    def publish(self, hint: Hint) -> None:
        here = self._here.get()
        with here.lock:
            inboxes = list(here.inboxes)
        for inbox in inboxes:
            inbox.post(hint)

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator[AsyncIterator[Hint]]:
        here = self._here.get()
        inbox = _Inbox(asyncio.get_running_loop())
        with here.lock:
            here.inboxes.append(inbox)
        try:
            yield inbox.read()
        finally:
            with here.lock:
                here.inboxes.remove(inbox)


class _Subscribers:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inboxes: list[_Inbox] = []


class _Inbox:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._hints: list[Hint] = []
        self._ready = asyncio.Event()

    def post(self, hint: Hint) -> None:
        if threading.get_ident() == self._thread:
            self._take(hint)
            return
        with suppress(RuntimeError):  # the loop is closed: nobody reads there any more
            self._loop.call_soon_threadsafe(self._take, hint)

    def _take(self, hint: Hint) -> None:
        if len(self._hints) >= BACKLOG:
            workers = frozenset(worker for earlier in self._hints for worker in earlier.workers)
            self._hints = [Hint(workers=workers, resync=True)]
        self._hints.append(hint)
        self._ready.set()

    async def read(self) -> AsyncIterator[Hint]:
        while True:
            await self._ready.wait()
            self._ready.clear()
            hints, self._hints = self._hints, []
            for hint in hints:
                yield hint
