"""Reports: the heartbeat that a worker sends with its claims."""

import math
import os
import socket
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from rota.domain.tuning import Tuning
from rota.engine.seats import Seats
from rota.engine.tallies import Tallies
from rota.engine.world import World
from rota.store import Report

REPORT_EVERY = 1.0
"""Seconds between reports; a claim in between carries none."""


class Reports:
    """Makes a report once a second, and keeps it until a claim that carried it is answered."""

    def __init__(self, seats: Seats, tallies: Tallies, tuning: Tuning, world: World) -> None:
        self._seats = seats
        self._tallies = tallies
        self._tuning = tuning
        self._clock = world.monotonic
        self._unsent: Report | None = None
        self._sent_at = -math.inf

    def next(self) -> Report | None:
        """Return the report for the next claim: the same one again until `sent`."""
        if self._unsent is None and self._clock() - self._sent_at > REPORT_EVERY:
            self._unsent = Report(
                host=socket.gethostname(),
                pid=os.getpid(),
                version=_version(),
                seats=self._seats.total,
                leased=len(self._seats),
                overdue=self._seats.overdue,
                tallies=self._tallies.take(),
                lease=self._tuning.lease,
            )
        return self._unsent

    def sent(self) -> None:
        """The claim with the last report was answered."""
        if self._unsent is not None:
            self._unsent, self._sent_at = None, self._clock()

    def hurry(self) -> None:
        """The next claim carries a report, however recent the last report is."""
        self._sent_at = -math.inf


@cache
def _version() -> str:
    try:
        return version("rota")
    except PackageNotFoundError:
        return ""
