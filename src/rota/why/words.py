"""Reasons in words."""

from rota.domain.decision import Reason

REFUSALS = {
    Reason.DISABLED: "the task is disabled",
    Reason.ALREADY_QUEUED: "an equal run waited already",
    Reason.ALREADY_RUNNING: "an earlier run still ran",
    Reason.ALREADY_DONE: "it was done already",
    Reason.RESTING: "it rests after its last run",
    Reason.BREAKER: "its breaker is open",
    Reason.QUEUE_FULL: "the queue was full",
    Reason.MISSED: "no worker was there to fire it",
    Reason.UNKNOWN_TASK: "nobody knows the task",
    Reason.NO_ACTIVITY: "the task has no activity policy",
    Reason.EXPIRED: "it was too late to start",
}
"""Why no run was made."""


def refusal(reason: Reason) -> str:
    """Return `the queue was full (queue_full)`."""
    return f"{REFUSALS[reason]} ({reason})" if reason in REFUSALS else str(reason)
