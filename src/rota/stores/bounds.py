"""The numbers that the four stores share: `constants` hands them to the Lua scripts and to the SQL functions.

A number of the port (`rota.store`, `rota.domain`, `rota.stores.retention`) is a promise and the same in every store.
How much work one step may do is not a promise: each store chooses its own `Bounds`, and this file lists all choices.
No caller relies on a bound: a step that reaches one leaves the rest for the next step, and says so where a caller waits
for the rest (`Claim.wake`, `Swept.more`, the count that `control` answers). See docs/decisions/0022.
"""

from msgspec import Struct
from msgspec.structs import asdict

from rota.domain.run import ATTEMPTS_KEPT, DIGITS, FAR_AHEAD
from rota.domain.schedule import FIRINGS_KEPT
from rota.store import DUE_SCHEDULES, ID_MEMORY, IDLE_MEMORY, OFFER_AGAIN, OFFERS
from rota.stores.charts import KEPT_MINUTES
from rota.stores.retention import MARK_MEMORY, WORKER_MEMORY

UNREADABLE = 60.0
"""Seconds after which a store looks again at a run or a schedule that this version cannot read."""


class Bounds(Struct, frozen=True, kw_only=True):
    """How many rows one step of a store handles at most; None: the store does all of them in one step."""

    parked: int = 1000
    """Runs of saturated keys that one claim parks."""
    expired: int = 1000
    """Runs too late to start that one claim or one sweep ends."""
    passed: int | None = None
    """Runs of one lane, too late to start, that one claim passes over."""
    opened: int | None = None
    """Keys whose rate has opened that one claim unparks."""
    loosened: int | None = None
    """Parked runs that one step unparks after the limits of their task have changed."""
    dropped: int = 10_000
    """Waiting runs that one command about a task ends."""
    announced: int = 100
    """Idle workers that one step wakes because a task was resumed, or because its limits have changed."""
    forgotten: int = 5000
    """Ended runs that one sweep forgets."""
    read: int | None = None
    """Runs that one read looks at before it says where to read on."""


LEDGER = Bounds()
"""Memory and SQLite: one writer at a time, so a step may take some tens of milliseconds."""
POSTGRES = Bounds()
"""A step holds its locks until it ends, and the steps of others go on beside it."""
REDIS = Bounds(parked=500, expired=500, passed=1000, opened=100, loosened=1000, dropped=1000, forgotten=1000, read=2000)
"""While a script runs, the server answers nobody else: so a step takes a few milliseconds."""


def constants(bounds: Bounds) -> dict[str, str]:
    """Every shared number by its name, as Lua and SQL write it."""
    numbers: dict[str, float] = {
        "ATTEMPTS_KEPT": ATTEMPTS_KEPT,
        "DUE_SCHEDULES": DUE_SCHEDULES,
        "FAR_AHEAD": FAR_AHEAD,
        "FIRINGS_KEPT": FIRINGS_KEPT,
        "IDLE_MEMORY": IDLE_MEMORY,
        "ID_MEMORY": ID_MEMORY,
        "KEPT_MINUTES": KEPT_MINUTES,
        "MARK_MEMORY": MARK_MEMORY,
        "OFFERS": OFFERS,
        "OFFER_AGAIN": OFFER_AGAIN,
        "PER_SECOND": 10**DIGITS,
        "UNREADABLE": UNREADABLE,
        "WORKER_MEMORY": WORKER_MEMORY,
    }
    numbers |= {f"{name.upper()}_AT_ONCE": most for name, most in asdict(bounds).items() if most is not None}
    return {name: repr(int(number)) if number == int(number) else repr(number) for name, number in numbers.items()}
