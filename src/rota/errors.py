"""All exceptions that rota raises to its users, and the exceptions that a handler may raise to rota.

Each message says what happened and what to do."""

from collections.abc import Mapping
from typing import Literal

from rota.domain.decision import Decision, Reason
from rota.domain.policy import FAR
from rota.domain.run import Run


class RotaError(Exception):
    """The base class of all errors that rota raises."""


class UsageError(RotaError):
    """The caller made a mistake: the fix is in the caller's code, command or settings."""


class InvalidArguments(UsageError, TypeError):
    """The arguments do not match the parameters of the task, or cannot be stored as JSON."""


class InvalidOptions(UsageError, ValueError):
    """An option, a policy or a setting has a value that rota does not accept."""


class UnknownTask(UsageError, LookupError):
    """No task of this name is defined here."""


class DuplicateTask(UsageError, ValueError):
    """Two functions of one app have the same task name or alias."""


class MissingExtra(UsageError, ImportError):
    """A store or a command needs an optional package that is not installed."""


class NotRunning(UsageError, RuntimeError):
    """A call needs a running engine or an app that this process does not have, or would block a running event loop."""


class NotSimulated(UsageError, RuntimeError):
    """Code inside `simulate` waits for a thread, a socket or a process, which virtual time cannot simulate."""


class DrainTimeout(RotaError, TimeoutError):
    """Runs were still due or running when the `timeout` of `drain` was over."""


class StoreError(RotaError):
    """The store cannot do what the caller asks for."""


class StoreUnavailable(StoreError, ConnectionError):
    """The store cannot be reached, opened or written. `passing` is true if a later try may succeed."""

    def __init__(self, message: str, passing: bool = True) -> None:
        super().__init__(message)
        self.passing = passing


class NoStore(StoreUnavailable):
    """No store exists at this URL yet, and a command that only reads does not create one."""

    def __init__(self, message: str) -> None:
        super().__init__(message, passing=False)


class StoreCorrupt(StoreError):
    """The store exists, but its content is damaged or was not written by rota."""


class Unstorable(StoreError, ValueError):
    """The store can never keep this value, so a retry does not help. Stores raise Unstorable only for a value that is
    proven to be bad."""


class SchemaTooNew(StoreError):
    """A newer version of rota has written this store."""


class Refused(RotaError):
    """A guard refused the submit, and no run was made; `decision.reason` says why."""

    def __init__(self, decision: Decision, message: str | None = None) -> None:
        super().__init__(message or f"the submit was refused: {decision.reason}; no run was made")
        self.decision = decision

    @property
    def reason(self) -> Reason:
        return self.decision.reason


class QueueFull(Refused):
    """The task has `max_pending` unfinished runs already, and no run was made."""


class IdConflict(Refused):
    """A run with this id (`using(id=…)`) exists, and its task or its arguments differ; no run was made."""


class RunNotFound(RotaError, LookupError):
    """The store has no run with this id: the run never existed, or retention has deleted it."""


class NotUndoable(UsageError):
    """What was done cannot be undone, or no longer."""


class WorkerNotFound(RotaError, LookupError):
    """The store has seen no worker of this name lately, or several whose names begin so."""


class StaleClaim(UsageError):
    """A pull worker has sent a claim with a larger number before. `n` is that number."""

    def __init__(self, n: int) -> None:
        super().__init__(f"the last claim of this worker has the number {n}: repeat that claim, or send {n + 1}")
        self.n = n


class ServiceError(RotaError):
    """A rota service has refused a request. `status` is the status of HTTP; 0 if there was no answer."""

    def __init__(self, words: str, status: int = 0, fields: Mapping[str, object] | None = None) -> None:
        super().__init__(words)
        self.status = status
        self.fields = dict(fields or {})

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed soon."""
        return self.status in (0, 429, 502, 503, 504)


class LeaseLost(RotaError):
    """The lease of `app.lease` was lost before its block ended: another caller may have it since."""


class ScheduleNotFound(RotaError, LookupError):
    """The store has no schedule with this id."""


class ScheduleTaken(UsageError, ValueError):
    """Another app owns the schedule with this id."""


class ScheduleChanged(RotaError):
    """A schedule no longer has the version for which it was put, or changes all the time."""


class RunEnded(RotaError):
    """`result()` was called on a run that ended without a result; `run` is that run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        reason = "" if run.reason is None or str(run.reason) == str(run.state) else str(run.reason)
        details = [str(run.error)] if run.error else [word for word in (reason, run.note) if word]
        super().__init__(": ".join([f"{run.task} {run.id} {run.state}", *details]))


class RunFailed(RunEnded):
    """The run failed and is not retried any more."""


class RunCancelled(RunEnded):
    """The run was cancelled, expired or superseded."""


class HandlerVerdict(Exception):
    """The base class of the exceptions by which a handler decides what happens to its run."""

    @property
    def __rota_verdict__(self) -> tuple[object, ...]:
        """The arguments of the exception; a child process sends them to the worker, which builds it again."""
        return self.args


class RetryAfter(HandlerVerdict):
    """Retry the run after `seconds`. The call counts as a failure and uses up one retry."""

    def __init__(self, seconds: float, why: str = "") -> None:
        super().__init__(_seconds(seconds), why)
        self.seconds = seconds


class Snooze(HandlerVerdict):
    """Call the handler again after `seconds`. The call does not count as a failure and uses up no retry."""

    def __init__(self, seconds: float) -> None:
        super().__init__(_seconds(seconds))
        self.seconds = seconds


class Discard(HandlerVerdict):
    """The run has failed, and a retry would not help: rota does not retry the run."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)


class TaskError(HandlerVerdict):
    """The work failed, was done in part or was skipped; `message` says why.

    "failed" and "partial" are failures, which the task's `retry` may retry. "skipped" ends the run as succeeded, and
    the run does not count as done for `once=`.
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
