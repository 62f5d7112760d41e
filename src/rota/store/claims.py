"""What a claim asks for and finds, and what a renewal answers."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from rota.domain.run import Run
from rota.domain.schedule import Schedule
from rota.store.reports import Orders, Report

OFFERS = 100
"""One claim offers at most this many lapsed leases."""
DUE_SCHEDULES = 1000
"""One claim offers at most this many due schedules."""
OFFER_AGAIN = 2.0
"""Seconds after which a lapsed lease or due schedule that one claim offered is offered to another claim."""
IDLE_MEMORY = 15.0
"""Seconds after its last claim for which an idle worker is hinted."""


class ClaimRequest(Struct, frozen=True):
    """What a worker asks for in one claim."""

    worker: str
    """The worker's name."""
    n: int
    """The number of this claim among those of the worker. The same number again answers the same batch."""
    tasks: Sequence[str]
    """The tasks whose runs the worker can call."""
    free: int
    """How many runs the worker has room for."""
    lease: float
    """Seconds for which the runs that the worker gets are leased to it."""
    report: Report | None = None
    """The worker's heartbeat; the store applies it once per `n`."""
    offers: bool = True
    """False: the claim takes runs and nothing else. It offers no lapsed lease and no schedule, and the store does not
    count the caller among the workers."""
    queues: Sequence[str] = ()
    """The queues whose runs the worker takes; empty: all queues."""


class Claim(Struct, frozen=True):
    """What a claim found."""

    now: float
    """The store's time."""
    runs: list[Run]
    """The runs that are leased to the worker from now on, in the order in which it should start them."""
    lapsed: list[Run]
    """Runs of other workers whose leases have lapsed. `settle` judges again whether they still are."""
    wake: float | None
    """Seconds until the worker should claim again; None if nothing is coming."""
    passed_over: bool = False
    """The claim passed over due runs that this worker may take once one of its own runs has ended."""
    schedules: list[Schedule] = []
    """Schedules whose time to fire has come: the worker plans their ticks and sends them with `fire`."""
    ended: Sequence[str] = ()
    """Ids of runs that this claim cancelled because it is too late to start them."""
    orders: Orders = Orders()
    """What people ask of the worker."""


class Renewal(StrEnum):
    """What a renewal answers for one lease."""

    OK = "ok"
    LOST = "lost"
    """The worker no longer has the lease: its handler should stop, and its settlement will be stale."""
    CANCEL = "cancel"
    """Renewed; somebody asks to cancel the run."""
    PAUSE = "pause"
    """Renewed; somebody asks to pause the run."""
