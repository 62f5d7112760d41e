"""Offers: what a claim brings beside runs: due schedules, lapsed leases, and runs that expired."""

from rota.domain.lifecycle import Lost, settlement_of
from rota.engine.endings import log_lost
from rota.engine.events import Announcer
from rota.engine.heart import Heart
from rota.engine.seats import Seats
from rota.engine.settler import Settler
from rota.engine.ticks import Ticks
from rota.store import Claim


class Offers:
    """Gives each offer of a claim to the part of the engine that handles it."""

    def __init__(self, seats: Seats, heart: Heart, settler: Settler, ticks: Ticks, announcer: Announcer) -> None:
        self._seats = seats
        self._heart = heart
        self._settler = settler
        self._ticks = ticks
        self._announcer = announcer

    def take(self, claim: Claim) -> None:
        self._ticks.take(claim.schedules, claim.now)
        self._announcer.expired(claim.ended)
        if claim.lapsed:
            self._rescue(claim)

    def _rescue(self, claim: Claim) -> None:
        """Settle each lapsed run as lost. The store judges again: a worker that has renewed meanwhile keeps its run."""
        ours = set(self._seats.unsettled())
        if any(run.lease in ours for run in claim.lapsed):
            self._heart.beat()  # this worker was frozen, not dead: renew before another worker takes its runs over
        for run in claim.lapsed:
            if run.lease not in ours and run not in claim.runs:
                settlement = settlement_of(run, Lost())
                log_lost(run, settlement)
                self._settler.settle(settlement, run)
