"""Rescue: a lapsed lease becomes a Lost outcome, settled like any other ending."""

import logging
from collections.abc import Sequence

from rota.domain.lifecycle import Lost, decide
from rota.domain.run import Run
from rota.engine.settler import Settler

log = logging.getLogger("rota")


def rescue(lapsed: Sequence[Run], settler: Settler) -> None:
    """The store judges each again when it is written: a worker that renewed meanwhile keeps its run."""
    for run in lapsed:
        log.warning("%s %s: the lease of worker %s lapsed (fence %d)", run.task, run.id, run.worker, run.fence)
        settler.settle(decide(run, Lost()), run)
