"""Gates: may one more run of a limited task start now? The number of running runs changes in the transaction that
adds or ends a lease."""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from rota.domain.policy import Limit, Rate


class Pass(Enum):
    OPEN = "open"
    SHUT = "shut"
    """No run of this task may start now."""
    PARK = "park"
    """No run of this key may start now: the due runs of the key leave the lanes until one of its runs ends or
    its rate opens."""


class RateState(Struct, frozen=True):
    """The state of a rate (GCRA): the instant at which its bucket is full again if nothing more starts."""

    full_at: float = 0.0

    def opens_at(self, rate: Rate) -> float:
        """Return the next instant at which a run may start."""
        return self.full_at - (rate.burst - 1) * rate.interval

    def tokens(self, rate: Rate, now: float) -> int:
        """Return how many runs may start now."""
        spare = now - self.opens_at(rate)
        return 0 if spare < 0 else min(rate.burst, 1 + int(spare / rate.interval))

    def taken(self, rate: Rate, now: float) -> "RateState":
        return RateState(max(self.full_at, now) + rate.interval)


class NamedRoom:
    """How many more runs may start under one named limit, during one claim. The gates of its tasks share it."""

    def __init__(self, row: str, left: int) -> None:
        self.row = row
        self.left = left


class Gate:
    """The gate of one task during one claim: it counts the runs that run already and those that the claim takes."""

    def __init__(
        self,
        limit: Limit | None,
        rate: Rate | None,
        running: int,
        task_rate: RateState,
        named: Sequence[NamedRoom] = (),
        paused: Sequence[str] = (),
    ) -> None:
        """`paused` are the keys of which no run starts."""
        self.paused = frozenset(paused)
        self.named = named
        self.limit = limit
        self.rate = rate
        self._running = running
        self._keys: dict[str, int] = {}
        self._rates: dict[str, RateState] = {"": task_rate}

    @property
    def keyed(self) -> bool:
        """Whether the limit or the rate is per key, or a key is paused, so that the gate must `know` each key."""
        return bool(self.paused or (self.limit and self.limit.per_key) or (self.rate and self.rate.per_key))

    def know(self, key: str, running: int, rate: RateState) -> None:
        """Tell the gate how many runs of `key` run, and the state of its rate, before this claim. Later calls for the
        same key change nothing."""
        self._keys.setdefault(key, running)
        self._rates.setdefault(key, rate)

    def knows(self, key: str) -> bool:
        return key in self._keys

    def try_key(self, key: str, now: float) -> Pass:
        if self.shut(now):
            return Pass.SHUT
        if self._saturated(key):
            return Pass.PARK
        if self.rate and self.rate.per_key and self._rates[key].opens_at(self.rate) > now:
            return Pass.PARK
        return Pass.OPEN

    def shut(self, now: float) -> bool:
        if self.limit and self.limit.total and self._running >= self.limit.total:
            return True
        if any(room.left <= 0 for room in self.named):
            return True
        return bool(self.rate and not self.rate.per_key and self._rates[""].opens_at(self.rate) > now)

    def take(self, key: str | None, now: float) -> None:
        """Count one more run that starts."""
        self._running += 1
        for room in self.named:
            room.left -= 1
        if key is not None:
            self._keys[key] = self._keys.get(key, 0) + 1
        name = key if self.rate and self.rate.per_key else ""
        if self.rate and name is not None:
            self._rates[name] = self._rates.get(name, RateState()).taken(self.rate, now)

    def opens_at(self) -> float | None:
        """Return when a task opens again that is shut by its rate."""
        if self.rate is None or self.rate.per_key:
            return None
        return self._rates[""].opens_at(self.rate)

    def key_opens_at(self, key: str) -> float | None:
        """Return when the rate of a key lets its parked runs start; None if a run of the key must end first."""
        if self.rate is None or not self.rate.per_key or self._saturated(key):
            return None
        return self._rates[key].opens_at(self.rate)

    def rates(self) -> dict[str, RateState]:
        """Return the rate states to store, by key. The state of the whole task has the empty key."""
        return {} if self.rate is None else {key: state for key, state in self._rates.items() if state.full_at}

    def _saturated(self, key: str) -> bool:
        limited = self.limit and self.limit.per_key and self._keys.get(key, 0) >= self.limit.per_key
        return bool(limited) or key in self.paused
