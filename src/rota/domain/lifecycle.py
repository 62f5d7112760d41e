"""Outcomes: how a call ended, and the one settlement that each outcome makes of its run."""

from msgspec import Struct

from rota.domain.decision import Reason
from rota.domain.joins import REPLACED
from rota.domain.policy import Retry
from rota.domain.run import Failure, Note, Run, State
from rota.domain.settlement import LOST, Charge, Finish, Requeue, Settlement

UNBINDABLE_RELEASES = 3
"""How often a run whose arguments do not fit is queued again, for workers with another version of the code."""
UNBINDABLE_DELAY = 5.0


class Succeeded(Struct, frozen=True):
    result: bytes | None = None


class Failed(Struct, frozen=True):
    """The handler raised. `retry` is the rule for this exception, if it differs from the retry of the run."""

    error: Failure
    retry: Retry | None = None
    partial: bool = False


class TimedOut(Struct, frozen=True):
    error: Failure
    retry: Retry | None = None


class BadResult(Struct, frozen=True):
    """The handler returned a value that cannot be stored. Another call would not help."""

    error: Failure


class RetryAsked(Struct, frozen=True):
    """The handler asked for a retry after so many seconds. It counts as a failure."""

    error: Failure
    after: float


class Snoozed(Struct, frozen=True):
    """The handler asked to be called later. It does not count as a failure."""

    after: float


class Discarded(Struct, frozen=True):
    """The handler failed and refused any retry."""

    error: Failure


class Skipped(Struct, frozen=True):
    """The handler found nothing to do: the run succeeds without a mark."""

    message: str


class Paused(Struct, frozen=True):
    """The handler stopped because its run was paused."""


class Crashed(Struct, frozen=True):
    """The process that ran this call alone died."""

    error: Failure


class Unbindable(Struct, frozen=True):
    """The stored arguments do not fit the signature of the task in this worker."""

    error: Failure


class Cancelled(Struct, frozen=True):
    """The handler was cancelled by a command."""


class Interrupted(Struct, frozen=True):
    """The worker stopped while the handler ran."""


class Released(Struct, frozen=True):
    """The worker gave the run back without calling the handler."""


class Lost(Struct, frozen=True):
    """The lease lapsed: the worker died, froze or lost its connection."""


Unsuccessful = (
    Failed
    | RetryAsked
    | Snoozed
    | Discarded
    | Skipped
    | TimedOut
    | BadResult
    | Unbindable
    | Cancelled
    | Paused
    | Interrupted
    | Released
    | Crashed
    | Lost
)
Outcome = Succeeded | Unsuccessful


class Ending(Struct, frozen=True):
    """The part of a settlement that the outcome decides."""

    action: Finish | Requeue
    outcome: str
    charge: Charge = Charge.NONE
    error: Failure | None = None
    called: bool = True
    lost: bool = False
    mark: bool = True

    @property
    def fails(self) -> bool:
        return isinstance(self.action, Finish) and self.action.state is State.FAILED


_SUCCEEDED = Finish(State.SUCCEEDED)


def settlement_of(
    run: Run,
    outcome: Outcome,
    seconds: float | None = None,
    note: Note | None = None,
    warnings: tuple[str, ...] = (),
) -> Settlement:
    """Return the settlement that `outcome` makes of `run`, which is running under its current fence.

    A skipped step of a flow writes a mark all the same: its period needs no other run of it.
    """
    if isinstance(outcome, Succeeded):  # the usual outcome: it needs neither an Ending nor the fields below
        action = _SUCCEEDED if outcome.result is None else Finish(State.SUCCEEDED, result=outcome.result)
        return Settlement(
            run.id, run.fence, run.worker or "", action, "succeeded", seconds=seconds, note=note, warnings=warnings
        )
    end, member = _ending(run, outcome), run.member
    return Settlement(
        run=run.id,
        fence=run.fence,
        worker=run.worker or "",
        action=end.action,
        outcome=end.outcome,
        charge=end.charge,
        seconds=seconds,
        error=end.error,
        called=end.called,
        lost=end.lost,
        mark=end.mark or (member is not None and bool(member.step)),
        note=note,
        warnings=warnings,
        stops=member.group if member is not None and member.stops and end.fails else None,
    )


def _ending(run: Run, outcome: Unsuccessful) -> Ending:
    """Outcomes that the handler itself decided; `_interruption` has the others."""
    match outcome:
        case Failed(error, retry, partial):
            return _failure(run, retry or run.policy.retry, error, Reason.PARTIAL if partial else Reason.FAILED)
        case RetryAsked(error, after):
            return _failure(run, run.policy.retry, error, Reason.FAILED, after)
        case Snoozed(after):
            return Ending(Requeue(after), "snoozed")
        case Discarded(error):
            return Ending(Finish(State.FAILED, Reason.DISCARDED), "discarded", Charge.FAILURE, error)
        case Skipped(message):
            end = Finish(State.SUCCEEDED, Reason.SKIPPED)
            return Ending(end, "skipped", error=Failure("Skipped", message), mark=False)
        case BadResult(error):
            return Ending(Finish(State.FAILED, Reason.BAD_RESULT), "bad_result", Charge.FAILURE, error)
        case _:
            return _interruption(run, outcome)


def _interruption(
    run: Run, outcome: TimedOut | Unbindable | Cancelled | Paused | Interrupted | Released | Crashed | Lost
) -> Ending:
    match outcome:
        case TimedOut(error, retry):
            return _failure(run, retry or run.policy.retry, error, Reason.TIMED_OUT)
        case Unbindable(error):
            return _unbindable(run, error)
        case Cancelled():
            return Ending(Finish(State.CANCELLED, Reason.CANCELLED), "cancelled")
        case Paused():
            return Ending(Requeue(paused=True), "paused")
        case Interrupted():
            if run.policy.lost == "fail":
                return Ending(Finish(State.FAILED, Reason.INTERRUPTED), "interrupted")
            return Ending(Requeue(), "interrupted")
        case Released():
            return Ending(Requeue(), "released", called=False)
        case Crashed(error):
            return _loss(run, "crashed", error)
        case Lost():
            return _loss(run, LOST)


def _failure(run: Run, retry: Retry, error: Failure, reason: Reason, after: float | None = None) -> Ending:
    action: Finish | Requeue
    if retry.allows(run.failures):
        action = Requeue(retry.wait(run.failures + 1, run.id) if after is None else after)
    else:
        action = Finish(State.FAILED, reason)
    return Ending(action, str(reason), Charge.FAILURE, error)


def _unbindable(run: Run, error: Failure) -> Ending:
    outcomes = [attempt.outcome for attempt in run.attempts]
    if REPLACED in outcomes:  # the attempts before this row were of other work
        outcomes = outcomes[len(outcomes) - outcomes[::-1].index(REPLACED) :]
    seen = outcomes.count("unbindable")
    action: Finish | Requeue
    if seen < UNBINDABLE_RELEASES:
        action = Requeue(UNBINDABLE_DELAY * 2**seen)
    else:
        action = Finish(State.FAILED, Reason.UNBINDABLE)
    return Ending(action, "unbindable", error=error, called=False)


def _loss(run: Run, outcome: str, error: Failure | None = None) -> Ending:
    action: Finish | Requeue = Requeue()
    if run.policy.lost == "fail":
        action = Finish(State.FAILED, Reason.LOST)
    elif run.losses + 1 >= run.policy.max_losses:
        action = Finish(State.FAILED, Reason.POISON)
    return Ending(action, outcome, Charge.LOSS, error, lost=outcome == LOST)
