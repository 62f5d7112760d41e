"""The numbers an engine runs by."""

import math
from typing import Any

from msgspec import Struct

from rota.domain.policy import LEAST_SILENCE
from rota.store import Retention


class Tuning(Struct, frozen=True, kw_only=True):
    """Seconds and seats. Contradictions are refused here, before anything starts."""

    concurrency: int = 10
    lease: float = 30.0
    renew: float = 0.0  # 0: a third of the lease
    rescue: float = 0.0  # 0: a sixth of the lease
    silence: float = 600.0
    grace: float = 30.0
    sweep: float = 60.0
    retention: Retention = Retention()

    def __post_init__(self) -> None:
        for name in ("lease", "renew", "rescue", "silence", "grace", "sweep"):
            value: object = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
                raise ValueError(f"{name}={value!r}: a number of seconds")
        seats: Any = self.concurrency
        if not isinstance(seats, int) or seats < 1:
            raise ValueError(f"concurrency={self.concurrency!r}: a whole number of seats, at least 1")
        if not 0.1 <= self.lease <= 86_400:
            raise ValueError(f"lease={self.lease}: from 0.1 seconds to a day")
        if self.silence < LEAST_SILENCE:
            raise ValueError(f"silence={self.silence}: at least {LEAST_SILENCE:g} second")
        if self.grace < 0:
            raise ValueError(f"grace={self.grace}: seconds from 0")
        if self.renew < 0 or self.renew > self.lease / 2:
            raise ValueError(f"renew={self.renew} with lease={self.lease}: renew at least twice per lease")

    @property
    def renew_every(self) -> float:
        return self.renew or self.lease / 3

    @property
    def rescue_every(self) -> float:
        return self.rescue or self.lease / 6
