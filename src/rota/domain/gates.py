"""Gates: whether one more run of a limited task may start now. Counts come from real leases, never from counters."""

from enum import Enum

from msgspec import Struct

from rota.domain.policy import Limit, Rate


class Pass(Enum):
    OPEN = "open"
    SHUT = "shut"
    """Nothing of this task may start now."""
    PARK = "park"
    """Nothing of this key may start now: its runs leave the due index until one of them ends."""


class RateState(Struct, frozen=True):
    """GCRA: the instant at which the bucket would be full again, were nothing more taken."""

    full_at: float = 0.0

    def opens_at(self, rate: Rate) -> float:
        """The next instant at which one may start."""
        return self.full_at - (rate.burst - 1) * rate.interval

    def tokens(self, rate: Rate, now: float) -> int:
        """How many may start now."""
        spare = now - self.opens_at(rate)
        return 0 if spare < 0 else min(rate.burst, 1 + int(spare / rate.interval))

    def taken(self, rate: Rate, now: float) -> "RateState":
        return RateState(max(self.full_at, now) + rate.interval)


class Gate:
    """One task's gate during one claim: what runs already, and what this claim adds."""

    def __init__(self, limit: Limit | None, rate: Rate | None, running: int, task_rate: RateState) -> None:
        self.limit = limit
        self.rate = rate
        self._running = running
        self._keys: dict[str, int] = {}
        self._rates: dict[str, RateState] = {"": task_rate}

    @property
    def keyed(self) -> bool:
        """Does it need to know the keys?"""
        return bool((self.limit and self.limit.per_key) or (self.rate and self.rate.per_key))

    def know(self, key: str, running: int, rate: RateState) -> None:
        """What stands of a key before this claim; once per key."""
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
        return bool(self.rate and not self.rate.per_key and self._rates[""].opens_at(self.rate) > now)

    def take(self, key: str | None, now: float) -> None:
        """One more starts."""
        self._running += 1
        if key is not None:
            self._keys[key] = self._keys.get(key, 0) + 1
        name = key if self.rate and self.rate.per_key else ""
        if self.rate and name is not None:
            self._rates[name] = self._rates.get(name, RateState()).taken(self.rate, now)

    def opens_at(self) -> float | None:
        """When a task that is shut by its rate opens again."""
        if self.rate is None or self.rate.per_key:
            return None
        return self._rates[""].opens_at(self.rate)

    def key_opens_at(self, key: str) -> float | None:
        """When parked runs of a key may go on by the clock; nothing if one of them has to end first."""
        if self.rate is None or not self.rate.per_key or self._saturated(key):
            return None
        return self._rates[key].opens_at(self.rate)

    def rates(self) -> dict[str, RateState]:
        """Rate states to keep, by key; the task's own under the empty key."""
        return {} if self.rate is None else {key: state for key, state in self._rates.items() if state.full_at}

    def _saturated(self, key: str) -> bool:
        return bool(self.limit and self.limit.per_key and self._keys.get(key, 0) >= self.limit.per_key)
