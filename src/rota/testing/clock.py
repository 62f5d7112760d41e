"""StoreClock: moves the clock of a store, so that tests do not wait."""

import time
from datetime import UTC, datetime, timedelta

from rota.errors import InvalidOptions
from rota.store import Backend


class StoreClock:
    """The clock of one store. The clock runs on by itself; `move` and `move_to` set it forward, never back.

    A sleeping engine notices the move within its poll interval of five seconds; `drain` notices at once.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self._backend.skew, UTC)

    def move(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """Set the clock forward; returns the new time."""
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if span < timedelta(0):
            raise InvalidOptions(f"move by {span}: a store's clock never goes back")
        self._backend.skew += span.total_seconds()
        return self.now

    def move_to(self, instant: datetime) -> datetime:
        """Set the clock forward to `instant`, an aware datetime; returns the new time."""
        if instant.tzinfo is None:
            raise InvalidOptions(f"move_to({instant!r}): it has no time zone; use e.g. tzinfo=UTC")
        if instant < self.now:
            raise InvalidOptions(f"move_to({instant!r}): it is {self.now} there, and a store's clock never goes back")
        self._backend.skew = instant.timestamp() - time.time()
        return self.now
