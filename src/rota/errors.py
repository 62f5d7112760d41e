"""Every exception that rota raises for its users; each message says what happened and what to do."""

from rota.domain.decision import Decision, Reason
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


class StoreError(RotaError):
    """The store cannot do what is asked of it."""


class StoreUnavailable(StoreError, ConnectionError):
    """The store cannot be reached, opened or written."""


class StoreCorrupt(StoreError):
    """The store is there, but what it holds is not a sound rota store."""


class SchemaTooNew(StoreError):
    """A newer rota has written this store."""


class Refused(RotaError):
    """A guard said no; `decision.reason` is why."""

    def __init__(self, decision: Decision, message: str | None = None) -> None:
        super().__init__(message or f"run {decision.run} was refused: {decision.reason}")
        self.decision = decision

    @property
    def reason(self) -> Reason:
        return self.decision.reason


class QueueFull(Refused):
    """There is no room for one more run."""


class RunNotFound(RotaError, LookupError):
    """The store knows no such run: it never did, or has forgotten it after its retention."""


class RunEnded(RotaError):
    """Awaiting a result found a run that has none."""

    def __init__(self, run: Run) -> None:
        self.run = run
        why = str(run.error) if run.error else str(run.reason or run.state)
        super().__init__(f"{run.task} {run.id} {run.state}: {why}")


class RunFailed(RunEnded):
    """The run failed and will not be tried again."""


class RunCancelled(RunEnded):
    """The run was cancelled, expired or superseded."""
