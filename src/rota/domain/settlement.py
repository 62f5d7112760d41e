"""Settlement: what the end of a call changes in its run, and the rules by which a store applies the change."""

from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rota.domain.decision import Reason
from rota.domain.guards import Mark
from rota.domain.run import ATTEMPTS_KEPT, Attempt, Failure, Note, RunHead, State, after
from rota.domain.secrets import scrubbed, secret_values, secrets_of
from rota.domain.tail import packed, unpacked

S = TypeVar("S", bound=RunHead)


class Charge(StrEnum):
    """Which counter of the run the end of a call adds one to."""

    NONE = "none"
    FAILURE = "failure"
    LOSS = "loss"


class Finish(Struct, frozen=True, tag="finish", omit_defaults=True, gc=False):
    """The run ends in a final state."""

    state: State
    reason: Reason | None = None
    result: bytes | None = None


class Requeue(Struct, frozen=True, tag="requeue", omit_defaults=True):
    """The run is queued again: after `delay` seconds, or without a delay at its old due time.

    `paused`: the handler stopped because of a pause. If somebody resumed the run while the handler was stopping, the
    run is queued and not paused.
    """

    delay: float = 0.0
    paused: bool = False


class Settlement(Struct, frozen=True, omit_defaults=True, gc=False):
    """How the claim of one run by one worker ended. `outcome` is the word in the recorded attempt.

    `lost`: another worker settles a lapsed lease; the store applies it only if the lease is still lapsed.
    `called` is false if the handler was never entered: the run can still expire then. `mark` is false if the end
    writes no mark, for example because the handler skipped its work. `stops` names a group whose waiting runs are
    cancelled in the same transaction.
    """

    run: str
    fence: int
    worker: str
    action: Finish | Requeue
    outcome: str
    charge: Charge = Charge.NONE
    seconds: float | None = None
    error: Failure | None = None
    called: bool = True
    lost: bool = False
    mark: bool = True
    note: Note | None = None
    warnings: tuple[str, ...] = ()
    stops: str | None = None
    log: str = ""
    """The end of what the handler logged (`domain.tail`)."""
    trace: str = ""
    """The span of the call, as a `traceparent`."""

    @property
    def has_text(self) -> bool:
        """Whether the handler, or an exception of it, has written anything that people read."""
        return bool(self.error is not None or self.note is not None or self.warnings or self.log)


def without_secrets(settlement: Settlement, body: bytes, args: bytes) -> Settlement:
    """Return the settlement of a run with this body, called with these arguments, with `***` for each of its secrets in
    the error, the warnings, the progress and the log: those that are marked, and those whose names say so."""
    values = secret_values(args, secrets_of(body)) if settlement.has_text else []
    if not values:
        return settlement
    error, note = settlement.error, settlement.note
    if error is not None:
        message, trace = scrubbed(error.message, values), scrubbed(error.traceback, values)
        error = Failure(error.type, message, trace)
    if note is not None and note.progress is not None:
        note = replace(note, progress=replace(note.progress, message=scrubbed(note.progress.message, values)))
    warnings = tuple(scrubbed(warning, values) for warning in settlement.warnings)
    log = packed(scrubbed(unpacked(settlement.log), values))
    return replace(settlement, error=error, note=note, warnings=warnings, log=log)


class Verdict(StrEnum):
    """The store's answer to a settlement: `already` is a repeat of one that was applied, `stale` changed nothing
    because the worker no longer has the run."""

    APPLIED = "applied"
    ALREADY = "already"
    STALE = "stale"


_APPLIED, _NOTHING, _RUNNING = Verdict.APPLIED, Charge.NONE, State.RUNNING
LOST = "lost"
"""The outcome of a lapsed lease. The worker that had the lease never writes it."""


def judge(run: RunHead | None, settlement: Settlement, now: float) -> Verdict:
    """Return whether the settlement applies to `run`: a compare-and-set on (run, fence, worker)."""
    if run is None:
        return Verdict.STALE
    if run.is_leased_to(settlement.fence, settlement.worker):
        lapsed = run.until is not None and run.until <= now
        return _APPLIED if lapsed or not settlement.lost else Verdict.STALE
    # A worker that lost its lease has the same fence as the settlement of the rescuer. So only a settlement of the same
    # kind (lost or not) is a repeat.
    for attempt in run.attempts:
        same = (attempt.fence, attempt.worker) == (settlement.fence, settlement.worker)
        if same and (attempt.outcome == LOST) == settlement.lost:
            return Verdict.ALREADY
    return Verdict.STALE


def apply(run: S, settlement: Settlement, now: float) -> S:
    """Return the run after a settlement for which `judge` answered applied."""
    ended = _ended(run, settlement, now)
    if settlement.note is not None:
        ended = noted(ended, settlement.note)
    return ended if settlement.charge is _NOTHING else _charged(ended, settlement)


def _ended(run: S, settlement: Settlement, now: float) -> S:
    action, attempts = settlement.action, _attempts(run, settlement, now)
    if isinstance(action, Requeue) and run.cancel_requested:
        action = Finish(
            State.CANCELLED, Reason.CANCELLED
        )  # a cancel that came during the call wins over a requeue, not over a finish
    if isinstance(action, Finish):
        return replace(
            run,
            attempts=attempts,
            worker=None,
            until=None,
            claimed_at=None,
            state=action.state,
            reason=action.reason,
            result=action.result,
            error=settlement.error,
            finished_at=now,
        )
    return replace(
        run,
        attempts=attempts,
        worker=None,
        until=None,
        claimed_at=None,
        state=State.PAUSED if run.pause_requested else State.QUEUED,
        pause_requested=False,
        due_at=after(now, action.delay) if action.delay else run.due_at,
        expires_at=None if settlement.called else run.expires_at,
        error=settlement.error,
    )


def _attempts(run: RunHead, settlement: Settlement, now: float) -> tuple[Attempt, ...]:
    """Return the attempts of the run, with the one that ends now."""
    attempt = Attempt(
        fence=run.fence,
        worker=run.worker or "",
        outcome=settlement.outcome,
        claimed_at=run.claimed_at or now,
        ended_at=now,
        seconds=settlement.seconds,
        error=settlement.error,
        warnings=settlement.warnings,
        log=settlement.log,
        trace=settlement.trace,
    )
    return (*run.attempts, attempt)[-ATTEMPTS_KEPT:] if run.attempts else (attempt,)


def noted(run: S, note: Note | None) -> S:
    """Return the run with the progress and the checkpoint of `note`."""
    if note is None:
        return run
    return replace(run, progress=note.progress or run.progress, saved=run.saved if note.saved is None else note.saved)


def _charged(run: S, settlement: Settlement) -> S:
    match settlement.charge:
        case Charge.FAILURE:
            return replace(run, failures=run.failures + 1)
        case Charge.LOSS:
            return replace(run, losses=run.losses + 1)
        case Charge.NONE:
            return run


def too_late(run: RunHead, now: float) -> bool:
    """Return whether a queued run has expired."""
    return run.state is State.QUEUED and run.expires_at is not None and run.expires_at <= now


def expire(run: S, now: float) -> S:
    """Return the queued run as expired."""
    return replace(run, state=State.CANCELLED, reason=Reason.EXPIRED, parked=False, finished_at=now)


def cancel(run: S, now: float, note: str | None, reason: Reason = Reason.CANCELLED) -> S:
    """Return the run after a cancel: a running run gets `cancel_requested`, a waiting run ends, a final run stays."""
    if run.state.final:
        return run
    if run.state is State.RUNNING:
        return replace(run, cancel_requested=True, pause_requested=False, note=note)
    return replace(run, state=State.CANCELLED, reason=reason, parked=False, note=note, finished_at=now)


def supersede(run: S, now: float) -> S:
    """Return a run that ends instead of being queued again, because another run of its unique key is queued."""
    return replace(run, state=State.CANCELLED, reason=Reason.SUPERSEDED, parked=False, finished_at=now)


def inherit(successor: S, run: RunHead) -> S:
    """Return the waiting run after it has superseded another run of the same work: it takes the earlier due time and
    the failures of that run."""
    due_at, failures = min(successor.due_at, run.due_at), max(successor.failures, run.failures)
    return replace(successor, due_at=due_at, failures=failures, parked=False)


def pause(run: S, note: str | None) -> S:
    """Return the run after a pause: a queued run is paused at once, a running run gets `pause_requested`."""
    if run.state is State.QUEUED:
        return replace(run, state=State.PAUSED, parked=False, note=note)
    if run.state is State.RUNNING and not run.cancel_requested:
        return replace(run, pause_requested=True, note=note)
    return run


def resume(run: S, note: str | None) -> S:
    """Return the run after a resume. Its due time stays the same."""
    if run.state is State.PAUSED:
        return replace(run, state=State.QUEUED, note=note)
    if run.state is State.RUNNING and run.pause_requested:
        return replace(run, pause_requested=False, note=note)
    return run


def mark_after(mark: Mark, run: RunHead, now: float) -> Mark:
    """Return the mark of a key after `run` ended. A cancelled run does not change it."""
    if run.state is State.SUCCEEDED:
        return Mark(succeeded_at=now, finished_at=now, failures=0)
    if run.state is State.FAILED:
        return replace(mark, finished_at=now, failures=mark.failures + 1)
    return mark


def claim(run: S, worker: str, lease: float, now: float) -> S:
    """Return a due run as claimed by `worker` for `lease` seconds."""
    return replace(run, state=_RUNNING, fence=run.fence + 1, worker=worker, claimed_at=now, until=after(now, lease))
