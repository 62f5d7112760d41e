"""EventStream: the events of a store, one after the other, as they happen."""

import asyncio
import logging
from collections import deque
from collections.abc import Collection
from typing import Self

from rota.client.client import Client
from rota.domain.backoff import Backoff
from rota.domain.event import Event
from rota.errors import InvalidOptions, StoreUnavailable
from rota.store import EventPage, EventQuery, Scope

log = logging.getLogger("rota")

FIRST_PAUSE, LAST_PAUSE = 0.2, 5.0
"""Seconds between two tries while the store is unreachable."""
SCOPES = tuple(scope.value for scope in Scope)


class EventStream:
    """What happens in a store from `cursor` on; without a cursor, from the first read on. It never ends.

    The stream waits for hints, and reads every few seconds without one. It goes on when the store was unreachable.
    """

    def __init__(
        self, client: Client, cursor: str | None = None, tasks: Collection[str] = (), of: Collection[str] = ()
    ) -> None:
        if unknown := [name for name in of if name not in SCOPES]:
            raise InvalidOptions(f"no events of {unknown[0]!r}; there are those of {', '.join(SCOPES)}")
        self.cursor = cursor
        """Where to go on. It moves with every event, also with those that the stream leaves out."""
        self._client = client
        self._tasks = frozenset(tasks)
        self._of = frozenset(of)
        self._unread: deque[Event] = deque()
        self._next = ""
        self._heard = 0

    async def start(self) -> Self:
        """Return when the store records events for this stream: it will bring all that is not there to be read now."""
        if self.cursor is None:
            self._take(await self._page())
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        await self.start()
        while True:
            while self._unread:
                event = self._unread.popleft()
                self.cursor = event.cursor if self._unread else self._next
                if self._is_wanted(event):
                    return event
            page = await self._page()
            self._take(page)
            if not page.events:
                self._heard = await self._client.event_news(self._client.backend.poll, self._heard)

    def _is_wanted(self, event: Event) -> bool:
        if not event.of:
            return True  # a gap
        return (not self._of or event.of in self._of) and (not self._tasks or event.task in self._tasks)

    def _take(self, page: EventPage) -> None:
        self._unread.extend(page.events)
        self._next = page.cursor
        if not page.events:
            self.cursor = page.cursor

    async def _page(self) -> EventPage:
        """Read the next page, however long the store is unreachable."""
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        while True:
            try:
                return await self._client.events(EventQuery(after=self.cursor))
            except StoreUnavailable as error:
                if not error.passing:
                    raise
                log.warning("no events for now: %s", error)
                await asyncio.sleep(backoff.pause())
