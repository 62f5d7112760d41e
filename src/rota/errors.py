"""Every exception that rota raises for its users; each message says what happened and what to do."""

from typing import Literal

from rota.domain.decision import Decision, Reason
from rota.domain.policy import FAR
from rota.domain.run import Run


class RotaError(Exception):
    """The root of them all."""


class UsageError(RotaError):
    """Something is asked of rota that cannot be: the fix is in the caller's code, command or settings."""


class InvalidArguments(UsageError, TypeError):
    """These arguments do not fit the task, or cannot be stored."""


class InvalidOptions(UsageError, ValueError):
    """A policy or option has a value it cannot have."""


class UnknownTask(UsageError, LookupError):
    """No task of this name is defined here."""


class DuplicateTask(UsageError, ValueError):
    """Two functions want the same task name."""


class MissingExtra(UsageError, ImportError):
    """A store or surface needs a package that is not installed."""


class NotRunning(UsageError, RuntimeError):
    """The app is not open on this event loop."""


class NotSimulated(UsageError, RuntimeError):
    """Something waits for the real world where only virtual time passes."""


class Restless(RotaError, TimeoutError):
    """`drain` found no end: something is still due or running."""


class StoreError(RotaError):
    """The store cannot do what is asked of it."""


class StoreUnavailable(StoreError, ConnectionError):
    """The store cannot be reached, opened or written. `passing` if the next try may find it well again."""

    def __init__(self, message: str, passing: bool = True) -> None:
        super().__init__(message)
        self.passing = passing


class NoStore(StoreUnavailable):
    """There is no store at this place yet, and whoever asks makes none."""

    def __init__(self, message: str) -> None:
        super().__init__(message, passing=False)


class StoreCorrupt(StoreError):
    """The store is there, but what it holds is not a sound rota store."""


class Unstorable(StoreError, ValueError):
    """The store can never keep this value: no later try helps. Stores raise it for a proven bad value, nothing else."""


class SchemaTooNew(StoreError):
    """A newer rota has written this store."""


class Refused(RotaError):
    """A guard said no; `decision.reason` is why."""

    def __init__(self, decision: Decision, message: str | None = None) -> None:
        super().__init__(message or f"the submit was refused: {decision.reason}; no run was made")
        self.decision = decision

    @property
    def reason(self) -> Reason:
        return self.decision.reason


class QueueFull(Refused):
    """There is no room for one more run."""


class RunNotFound(RotaError, LookupError):
    """The store knows no such run: it never did, or has forgotten it after its retention."""


class ScheduleNotFound(RotaError, LookupError):
    """The store knows no such schedule."""


class ScheduleTaken(UsageError, ValueError):
    """A schedule of this name belongs to someone else."""


class RunEnded(RotaError):
    """Awaiting a result found a run that has none."""

    def __init__(self, run: Run) -> None:
        self.run = run
        reason = "" if run.reason is None or str(run.reason) == str(run.state) else str(run.reason)
        said = [str(run.error)] if run.error else [word for word in (reason, run.note) if word]
        super().__init__(": ".join([f"{run.task} {run.id} {run.state}", *said]))


class RunFailed(RunEnded):
    """The run failed and will not be tried again."""


class RunCancelled(RunEnded):
    """The run was cancelled, expired or superseded."""


class HandlerVerdict(Exception):
    """What a handler may raise to say what becomes of its run; never an error of rota's."""

    @property
    def __rota_verdict__(self) -> tuple[object, ...]:
        """Its arguments, for the way from a child process."""
        return self.args


class RetryAfter(HandlerVerdict):
    """Try again after so many seconds; it draws on the retries like any failure."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(_seconds(seconds), why)
        self.seconds = seconds


class Snooze(HandlerVerdict):
    """Call me again after so many seconds; this is no failure and charges nothing."""

    def __init__(self, seconds: float) -> None:
        super().__init__(_seconds(seconds))
        self.seconds = seconds


class Discard(HandlerVerdict):
    """Failed, and no retry would help."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)


class TaskError(HandlerVerdict):
    """How the work went, where it neither simply succeeded nor broke.

    "failed" and "partial" are failures and may be retried; "skipped" succeeds without counting as done.
    """

    def __init__(self, status: Literal["failed", "partial", "skipped"], message: str = "") -> None:
        if status not in ("failed", "partial", "skipped"):
            raise ValueError(f"TaskError({status!r}): choose failed, partial or skipped")
        super().__init__(status, message)
        self.status = status
        self.message = message

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status


def _seconds(value: float) -> float:
    if not 0 <= value <= FAR:
        raise ValueError(f"{value!r}: seconds from 0 to ten years")
    return value
