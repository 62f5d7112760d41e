"""Events for other processes: what `Store.events` takes and answers."""

from msgspec import Struct

from rota.domain.event import Event
from rota.errors import InvalidOptions

SUBSCRIBED = 3600.0
"""Seconds for which a read of events makes the store record events."""
EVENTS_KEPT = 100_000
"""The most events that a store remembers, after a sweep."""
EVENT_MEMORY = 3600.0
"""Seconds for which a store remembers an event at most, after a sweep."""
LONGEST_CURSOR = 40


class EventQuery(Struct, frozen=True, kw_only=True):
    """Which events to read, in the order in which they were recorded."""

    after: str | None = None
    """Where the last read ended: `EventPage.cursor` or `Event.cursor`. None: only what happens from now on."""
    limit: int = 500
    """The most events in one page; a gap comes on top."""


class EventPage(Struct, frozen=True):
    """One page of events."""

    now: float
    """The store's time."""
    events: list[Event]
    cursor: str
    """Where the next read begins."""


def event_number(cursor: str) -> tuple[int, int]:
    """Return the number of the event at which a read ended, and the time in the cursor, if it has one, else 0."""
    number, _, at = cursor.partition("-")
    if len(cursor) <= LONGEST_CURSOR and all(part.isascii() and part.isdecimal() for part in (number, at or "0")):
        return int(number), int(at or "0")
    raise InvalidOptions(f"cursor {cursor!r} is not where a list of events ended")
