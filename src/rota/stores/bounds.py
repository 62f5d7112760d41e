"""The numbers that the four stores share. `constants` gives them to the Lua scripts and to the SQL functions.

A number of the port (`rota.store`, `rota.domain`, `rota.stores.retention`) is a promise and the same in every store.
How much work one transaction may do is not a promise: each store has its own `Bounds`, all of them in this file. A
transaction that reaches a bound leaves the remaining rows to the next one. If a caller waits for those rows, the answer
says that there are more (`Claim.wake`, `Swept.more`, the count that `control` returns). See docs/decisions/0022.
"""

from msgspec import Struct
from msgspec.structs import asdict

from rota.domain.run import ATTEMPTS_KEPT, DIGITS, FAR_AHEAD
from rota.domain.schedule import FIRINGS_KEPT
from rota.store import (
    AUDIT_KEPT,
    DUE_SCHEDULES,
    EVENT_MEMORY,
    EVENTS_KEPT,
    ID_MEMORY,
    IDLE_MEMORY,
    OFFER_AGAIN,
    OFFERS,
    OWN_ID_MEMORY,
    PAUSED_KEYS,
    SLOTS_KEPT,
    SUBSCRIBED,
    TOTAL,
    TOTAL_MEMORY,
    UNHEARD,
)
from rota.stores.retention import MARK_MEMORY, WORKER_MEMORY

UNREADABLE = 60.0
"""Seconds after which a store tries again to read a run or a schedule that this version could not read."""
RAISE_EVERY = 0.25
"""PostgreSQL: seconds between two raises of a floor (postgres/functions/floors.sql). A look walks over the rows that
died in the last two or three of them."""
SLACK = 0.2
"""PostgreSQL: seconds by which floors stay behind the store's time. The store's time goes back by less: it is written
down every 0.05 seconds."""

HANDED_BYTES = 7000
"""PostgreSQL: the longest run as text that is handed over. A message has at most 8,000 bytes."""
QUEUES_KEPT = 100
"""PostgreSQL: pairs of a task and a queue beyond which a sweep forgets those without runs."""


class Bounds(Struct, frozen=True, kw_only=True):
    """The most rows that one transaction of a store handles. None: one transaction handles all rows."""

    parked: int = 1000
    """Runs that one claim parks because the limit or the rate of their key is used up."""
    expired: int = 1000
    """Runs that one claim or one sweep ends because they are too late to start."""
    passed: int | None = None
    """Runs of one lane that one claim skips because they are too late to start."""
    opened: int | None = None
    """Keys whose rate has opened that one claim unparks."""
    loosened: int | None = None
    """Parked runs that one transaction unparks after the limits of their task have changed."""
    dropped: int = 10_000
    """Waiting runs that one command about a task ends."""
    released: int | None = None
    """Runs that one transaction lets start because what they waited for has ended."""
    announced: int = 100
    """Idle workers that one transaction wakes because a task was resumed, or because its limits have changed."""
    forgotten: int = 5000
    """Ended runs that one sweep forgets."""
    planned: int | None = None
    """Runs of a plan that one script puts, and runs of its group that one script looks at."""
    read: int | None = None
    """Runs that one read looks at before it returns a cursor."""
    candidates: int | None = None
    """Runs of one lane that a claim reads together."""
    gated: int | None = None
    """Runs of one lane that a claim reads together at least, if the task has a limit or a rate: some may not start."""
    lanes: int | None = None
    """Lanes of one priority that a claim merges, even if the worker has fewer seats. So the first arrival comes first
    among runs that are due at one instant."""


LEDGER = Bounds()
"""Memory and SQLite: there is one writer at a time, so a transaction may take some tens of milliseconds."""
POSTGRES = Bounds()
"""A transaction holds its locks until it ends; other transactions run at the same time."""
REDIS = Bounds(
    parked=200,
    expired=200,
    passed=1000,
    opened=100,
    loosened=200,
    released=200,
    dropped=150,
    forgotten=150,
    planned=200,
    read=2000,
    candidates=200,
    gated=20,
    lanes=50,
)
"""While a script runs, the server answers nobody else: a script may take a few milliseconds, 20 at most."""
REDIS_ITEMS = 1000
"""The most runs of one put, and of the callers whose items go into one call. A longer batch is sent in parts."""
REDIS_PART = 200
"""The most items of any other script: these items need not come together."""


def constants(bounds: Bounds) -> dict[str, str]:
    """Return every shared number by its name, as Lua and SQL write it."""
    numbers: dict[str, float] = {
        "ATTEMPTS_KEPT": ATTEMPTS_KEPT,
        "AUDIT_KEPT": AUDIT_KEPT,
        "DUE_SCHEDULES": DUE_SCHEDULES,
        "EVENTS_KEPT": EVENTS_KEPT,
        "EVENT_MEMORY": EVENT_MEMORY,
        "FAR_AHEAD": FAR_AHEAD,
        "FIRINGS_KEPT": FIRINGS_KEPT,
        "IDLE_MEMORY": IDLE_MEMORY,
        "ID_MEMORY": ID_MEMORY,
        "TOTAL": TOTAL,
        "TOTAL_MEMORY": TOTAL_MEMORY,
        "MARK_MEMORY": MARK_MEMORY,
        "OFFERS": OFFERS,
        "OFFER_AGAIN": OFFER_AGAIN,
        "OWN_ID_MEMORY": OWN_ID_MEMORY,
        "PAUSED_KEYS": PAUSED_KEYS,
        "SUBSCRIBED": SUBSCRIBED,
        "PER_SECOND": 10**DIGITS,
        "UNREADABLE": UNREADABLE,
        "WORKER_MEMORY": WORKER_MEMORY,
        "RAISE_EVERY": RAISE_EVERY,
        "SLACK": SLACK,
        "QUEUES_KEPT": QUEUES_KEPT,
        "UNHEARD": UNHEARD,
        "HANDED_BYTES": HANDED_BYTES,
        "MINUTES_KEPT": SLOTS_KEPT[1],
    }
    numbers |= {f"{name.upper()}_AT_ONCE": most for name, most in asdict(bounds).items() if most is not None}
    return {name: repr(int(number)) if number == int(number) else repr(number) for name, number in numbers.items()}
