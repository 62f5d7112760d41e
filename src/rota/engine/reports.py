"""Reports: the heartbeat that a worker sends with its claims."""

import math
import os
import socket
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from rota.domain.tuning import Tuning
from rota.engine.seats import Seats
from rota.engine.stalls import Stalls
from rota.engine.tallies import Tallies
from rota.engine.world import World
from rota.store import WRONG, Report

REPORT_EVERY = 1.0
"""Seconds between reports; a claim in between carries none."""


class Reports:
    """Makes a report once a second, and keeps it until a claim that carried it is answered."""

    def __init__(self, seats: Seats, tallies: Tallies, tuning: Tuning, world: World) -> None:
        self._seats = seats
        self.stalls = Stalls(seats, world.monotonic)
        self._tallies = tallies
        self._tuning = tuning
        self._clock = world.monotonic
        self._wall = world.wall
        self._asked_at = 0.0
        self._ahead = 0.0
        self._began = 0.0
        self._unsent: Report | None = None
        self._sent_at = -math.inf

    def next(self) -> Report | None:
        """Return the report for the next claim: the same one again until `sent`."""
        self._asked_at = self._wall()
        if self._unsent is None and self._clock() - self._sent_at > REPORT_EVERY:
            self._unsent = Report(
                host=socket.gethostname(),
                pid=os.getpid(),
                version=_version(),
                seats=self._seats.total,
                leased=len(self._seats),
                overdue=self._seats.overdue,
                tallies=self._tallies.take(),
                totals=self._tallies.take_totals(),
                lease=self._tuning.lease,
                ahead=self._ahead,
                began=self._began,
                stalls=self.stalls.now(),
            )
        return self._unsent

    def sent(self, now: float) -> None:
        """The claim with the last report was answered, at `now` by the store's clock."""
        self._began = self._began or now
        least, most = self._asked_at - now, self._wall() - now
        ahead = 0.0 if least <= 0 <= most else min(least, most, key=abs)  # the answer was on its way for a while
        self._ahead = round(ahead, 1) if abs(ahead) > WRONG else 0.0
        if self._unsent is not None:
            self._unsent, self._sent_at = None, self._clock()

    @property
    def has_counts(self) -> bool:
        """Something was counted that no report has told the store."""
        return self._unsent is not None or bool(self._tallies)

    def hurry(self) -> None:
        """The next claim carries a report, however recent the last report is."""
        self._sent_at = -math.inf


@cache
def _version() -> str:
    try:
        return version("rota")
    except PackageNotFoundError:
        return ""
