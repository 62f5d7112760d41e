"""Rescue: a lapsed lease becomes a Lost outcome, settled like any other ending."""

from collections.abc import Sequence

from rota.domain.lifecycle import Lost, settlement_of
from rota.domain.run import Run
from rota.engine.endings import tell_lost
from rota.engine.settler import Settler


def rescue(lapsed: Sequence[Run], settler: Settler) -> None:
    """The store judges each again when it is written: a worker that renewed meanwhile keeps its run."""
    for run in lapsed:
        settlement = settlement_of(run, Lost())
        tell_lost(run, settlement)
        settler.settle(settlement, run)
