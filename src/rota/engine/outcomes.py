"""What a handler returned or raised, as an Outcome."""

import logging
import traceback
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from rota.domain import codec
from rota.domain.arguments import encode_result
from rota.domain.kinds import is_number
from rota.domain.lifecycle import (
    BadResult,
    Discarded,
    Failed,
    Outcome,
    RetryAsked,
    Skipped,
    Snoozed,
    Succeeded,
    TimedOut,
)
from rota.domain.policy import FAR, Retry
from rota.domain.results import FailOn, StatusReport, judged
from rota.domain.run import Failure, storable
from rota.errors import Discard, HandlerVerdict, RetryAfter, Snooze, TaskError

log = logging.getLogger("rota")

TRACEBACK_LIMIT = 16_000
MESSAGE_LIMIT = 2_000
VERDICTS: dict[str, type[HandlerVerdict]] = {kind.__name__: kind for kind in (RetryAfter, Snooze, Discard, TaskError)}

_NOTHING = Succeeded()


def returned(result: object, reader: FailOn | None, warn: Callable[[str], None]) -> Outcome:
    """Return the outcome of a call that returned `result`. `reader` judges the result; `warn` is called with its
    warnings."""
    if reader is None:
        return stored(result)
    try:
        report = judged(result, reader)
        for note in report.notes:
            warn(note)
    except Exception as error:  # the user's own function, or a __repr__ of the user's own
        return BadResult(
            Failure(type(error).__name__, storable(f"fail_on cannot read the result: {error}", MESSAGE_LIMIT))
        )
    return stored(result) if report.status == "success" else reported(report)


def reported(report: StatusReport) -> Outcome:
    """Return the outcome of a result that reports its own failure: the same as for a TaskError with these words."""
    if report.status == "skipped":
        return Skipped(storable(report.words, MESSAGE_LIMIT))
    return Failed(Failure("TaskError", storable(report.words, MESSAGE_LIMIT)), partial=report.status == "partial")


def stored(result: object) -> Succeeded | BadResult:
    """Success with the encoded result, or the reason why the result cannot be stored."""
    if result is None:
        return _NOTHING
    try:
        encoded = encode_result(result)
    except Exception as error:  # a type of the user's own may raise anything while it is written
        return BadResult(
            Failure(type(error).__name__, storable(f"the result cannot be stored: {error}", MESSAGE_LIMIT))
        )
    if len(encoded) > codec.RESULT_LIMIT:
        too_large = f"the result takes {len(encoded):,} bytes, more than {codec.RESULT_LIMIT:,}"
        return BadResult(Failure("ValueError", too_large))
    return Succeeded(encoded)


def raised(error: BaseException, retry: Retry) -> Outcome:
    if isinstance(error, HandlerVerdict):
        return verdict(error, failure(error))
    return Failed(failure(error), retry.for_error(error))


def with_wait(outcome: Failed | TimedOut, retry: Retry, failures: int) -> Outcome:
    """Return `outcome` with the wait that the function of its retry says (`Retry(after=…)`). `retry` is the retry of
    the task, for failures that have none of their own. `failures` counts this failure too."""
    rule = outcome.retry or retry
    if rule.after is None or not rule.allows(failures - 1):
        return outcome
    try:
        seconds = rule.after(failures, outcome.error)
        if seconds is not None and not (is_number(seconds) and 0 <= seconds <= FAR):
            raise ValueError(f"it returned {seconds!r}, which is no number of seconds")
        return replace(outcome, retry=rule.answered(seconds))
    except Exception:  # the user's own function
        log.exception("Retry(after=…) failed; the usual backoff is used")
        return replace(outcome, retry=rule.without_rules())


def verdict(error: HandlerVerdict, failure: Failure) -> Outcome:
    """Return the outcome that an exception raised on purpose asks for."""
    match error:
        case RetryAfter():
            return RetryAsked(failure, error.seconds)
        case Snooze():
            return Snoozed(error.seconds)
        case TaskError(status="skipped"):
            return Skipped(storable(error.message, MESSAGE_LIMIT))
        case TaskError():
            plain = Failure("TaskError", storable(error.message, MESSAGE_LIMIT), failure.traceback)
            return Failed(plain, partial=error.status == "partial")
        case _:
            return Discarded(failure)


def verdict_from(name: str, arguments: Sequence[Any], failure: Failure) -> Outcome | None:
    """Return the outcome that an exception `name` of a child process asks for; None if it is not one of VERDICTS."""
    kind = VERDICTS.get(name)
    return None if kind is None else verdict(kind(*arguments), failure)


def failure(error: BaseException) -> Failure:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        message = str(error)
        lines = traceback.format_exception(kind, error, _users_part(error.__traceback__))
    except Exception:  # a broken __str__ of the user's own must not lose the run
        message, lines = "(its message could not be read)", []
    trace = "".join(lines)[-TRACEBACK_LIMIT:]
    return Failure(name, storable(message, MESSAGE_LIMIT), storable(trace, TRACEBACK_LIMIT))


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback without the frames of rota's engine that come before the handler."""
    at = trace
    while at is not None and at.tb_frame.f_globals.get("__name__", "").startswith("rota.engine."):
        at = at.tb_next
    return at or trace
