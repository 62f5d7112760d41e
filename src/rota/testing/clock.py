"""StoreClock: moves a store's time, so that tests need not wait."""

import time
from datetime import UTC, datetime, timedelta

from rota.errors import InvalidOptions
from rota.store import Backend


class StoreClock:
    """The clock of one store. It moves on by itself, and further when told to; never back.

    An engine that is asleep notices within its poll, five seconds; `drain` looks at once.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time() + self._backend.skew, UTC)

    def move(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """Let time pass; gives the new now."""
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if span < timedelta(0):
            raise InvalidOptions(f"move by {span}: a store's clock never goes back")
        self._backend.skew += span.total_seconds()
        return self.now

    def move_to(self, instant: datetime) -> datetime:
        """Let time pass until this instant, an aware datetime."""
        if instant.tzinfo is None:
            raise InvalidOptions(f"move_to({instant!r}): it has no time zone; use e.g. tzinfo=UTC")
        if instant < self.now:
            raise InvalidOptions(f"move_to({instant!r}): it is {self.now} there, and a store's clock never goes back")
        self._backend.skew = instant.timestamp() - time.time()
        return self.now
