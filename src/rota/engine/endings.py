"""Log lines about ended calls: a level to alert on, and a traceback where an exception was unexpected."""

import logging

from rota.domain.run import Failure, Run, State
from rota.domain.settlement import Finish, Settlement
from rota.engine.logs import about

log = logging.getLogger("rota")

VERDICTS = frozenset({"TaskError", "rota.errors.TaskError", "rota.errors.RetryAfter", "rota.errors.Discard"})
"""Exceptions that a handler raises on purpose; their tracebacks are not logged."""
CHAINED = "\nThe above exception was the direct cause"


def log_ending(run: Run, settlement: Settlement) -> None:
    """Log the ending of a call: INFO for a success, WARNING for a failure that is tried again, ERROR for the last."""
    took, error, action = settlement.seconds or 0.0, settlement.error, settlement.action
    failed = isinstance(action, Finish) and action.state is State.FAILED
    if settlement.outcome == "skipped" and error is not None:
        log.info("%s %s skipped after %.3f s: %s", run.task, run.id, took, error.message, extra=about(run))
    elif error is None and not failed:
        if log.isEnabledFor(logging.INFO):
            log.info("%s %s %s in %.3f s", run.task, run.id, settlement.outcome, took, extra=about(run))
    else:
        then = "it will not be tried again"
        if not isinstance(action, Finish):
            then = f"it will be tried again in {action.delay:.1f} s" if action.delay else "it will be tried again"
        log.log(
            logging.ERROR if failed else logging.WARNING,
            "%s %s failed after %.3f s%s, %s%s%s",
            run.task,
            run.id,
            took,
            "" if settlement.outcome == "failed" else f" ({settlement.outcome})",
            then,
            "" if error is None else f": {error}",
            "" if error is None else _trace(error),
            extra=about(run),
        )


def log_lost(run: Run, settlement: Settlement) -> None:
    """Log that the lease of `run` lapsed: its worker died, froze or is cut off."""
    final = isinstance(settlement.action, Finish)
    log.log(
        logging.ERROR if final else logging.WARNING,
        "%s %s: the lease of worker %s lapsed (fence %d), %s",
        run.task,
        run.id,
        run.worker,
        run.fence,
        f"it failed ({settlement.action.reason})" if isinstance(settlement.action, Finish) else "it is restarted",
        extra=about(run),
    )


def _trace(error: Failure) -> str:
    """Return the traceback of `error`; for an exception raised on purpose, only if another exception caused it."""
    if not error.traceback or (error.type in VERDICTS and CHAINED not in error.traceback):
        return ""
    return f"\n{error.traceback}"
