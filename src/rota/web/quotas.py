"""Quotas: how often an address may fail to log in, and how many requests a credential may make."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from rota.web.problems import Problem

MINUTE = 60.0
MOST_NAMES = 10_000
"""Names that a quota remembers; it forgets those that were counted longest ago."""


class Quota:
    """At most so many a minute for each name. What was not used comes back evenly."""

    def __init__(self, words: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._words = words
        self._clock = clock
        self._full_at: OrderedDict[str, float] = OrderedDict()  # when the name may use its whole quota again

    def take(self, name: str, most: int) -> None:
        """Count one for `name`. Raise a 429 if there are `most` in the last minute."""
        wait = self.wait(name, most)
        if wait > 0:
            raise Problem(429, self._words, headers={"Retry-After": str(math.ceil(wait))})
        self._full_at[name] = max(self._full_at.get(name, 0.0), self._clock()) + MINUTE / most
        self._full_at.move_to_end(name)
        while len(self._full_at) > MOST_NAMES:
            self._full_at.popitem(last=False)

    def wait(self, name: str, most: int) -> float:
        """Return after how many seconds `name` may count one more; 0: now."""
        free_at = self._full_at.get(name, 0.0) + MINUTE / most - MINUTE
        return max(0.0, round(free_at - self._clock(), 6))
